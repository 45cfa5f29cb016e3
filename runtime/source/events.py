"""The messages between a source's coordinator and its readers: lists that begin with a tag.

=======================  =====================================================================
coordinator to reader    meaning
=======================  =====================================================================
splits, bytes            splits to read, as `pack_splits` makes them
no more                  nothing will come after what came
source event, value      from the enumerator
align, limit             do not read on where the watermark is above the limit (none: there is
                         no limit), and report the watermark
=======================  =====================================================================

===========================  =================================================================
reader to coordinator        meaning
===========================  =================================================================
register, host               the reader is there; the first that it says
request                      it could read another split
source event, value          for the enumerator
watermark, value, is idle    how far it has read (none: not known yet), or that it has nothing
===========================  =================================================================
"""

from __future__ import annotations

from typing import Final

from epochgate.runtime.api.malformed_event import EventForms

SPLITS: Final = "splits"
NO_MORE: Final = "no more"
SOURCE_EVENT: Final = "source event"
ALIGN: Final = "align"

REGISTER: Final = "register"
REQUEST: Final = "request"
WATERMARK: Final = "watermark"

FROM_READER: Final[EventForms] = {
    REGISTER: ((str,),),
    REQUEST: (),
    SOURCE_EVENT: ((),),
    WATERMARK: ((int, type(None)), (bool,)),
}
