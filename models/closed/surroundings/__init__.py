"""The surroundings of the job in a closed system: processes and wires, users' coordinators, store
and time.

These machines stand for what epochgate does not decide. They may do whatever the real ones may, at
any moment. They also keep the record against which the invariants are claimed: how far each
coordinator had sent at its snapshot, and how far each subtask had handled at its own.
"""
