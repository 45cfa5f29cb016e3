"""The certificate of one run, and what driver and tasks make of it.

Decides who speaks for the driver: the holder of a private key that never leaves its memory. The
certificate is made at the start of the job, signed by itself alone, and travels to the tasks beside
the run's key; they take it, and no other, for the driver's. Nothing but TLS 1.3 is spoken,
without resumption, so that every connection has keys of its own.

The certificate is valid at all times: the clocks of the hosts take no part, and the run ends it.
Leaves to `private_stream` how bytes pass. Runs on the thread that starts the job, and in the tasks.
"""

from __future__ import annotations

import datetime
import os
import socket
import ssl
from typing import Final, NamedTuple

from epochgate.spark.extras import library
from epochgate.spark.wire.private_stream import PrivateStream

_FOR_EVER: Final = (datetime.datetime(1970, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59))


class Credentials(NamedTuple):
    """The credentials that a driver needs: `context` to serve with; the tasks get `certificate`
    (DER).
    """

    context: ssl.SSLContext
    certificate: bytes

    def private(self, sock: socket.socket) -> PrivateStream:
        """The driver's side of a private connection over `sock`, which is non-blocking."""
        return PrivateStream(sock, self.context, is_driver=True)


def new_credentials() -> Credentials:
    """A new private key, known to this process alone, with its certificate.

    Raises ExtraMissing where the library `cryptography` is not installed.
    """
    # Named once, since the library is needed on drivers of private wires alone.
    x509 = library("cryptography.x509", what="a private wire", extra="spark")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "epochgate run")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FOR_EVER[0])
        .not_valid_after(_FOR_EVER[1])
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    pem = serialization.Encoding.PEM
    _load(
        context,
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
    return Credentials(context, certificate.public_bytes(serialization.Encoding.DER))


def task_context(certificate: bytes) -> ssl.SSLContext:
    """Return the context that a task connects with: `certificate` (DER) is the only one that it
    takes.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # one certificate is known, whatever name the driver goes by
    context.load_verify_locations(cadata=certificate)
    return context


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Through pipes, because `ssl` takes paths alone and the key is to be in no file."""
    ends = [_pipe_with(content) for content in (certificate, key)]
    try:
        context.load_cert_chain(*(f"/dev/fd/{end}" for end in ends))
    finally:
        for end in ends:
            os.close(end)


def _pipe_with(content: bytes) -> int:
    """The reading end of a pipe that holds `content`; less than a pipe takes at once."""
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    return read
