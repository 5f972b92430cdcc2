"""Data that both sides of a wire share. Pure: no I/O, no trio.

* `messages`: the message, its roles, types, statuses and the table of moves (M1 to M4)
* `attachments`: the files of a message (M8)
* `sessions`: sessions, channels, stops, steps, usage
* `jobs`: what runs on behind a result, and what waits for a person's yes
* `events`: what listeners hear
* `tools`: what a model is told of a tool
* `titles`: a session in a few words; `graphemes`: where a text can be cut without breaking a character
* `codec`: the strict converter between values and JSON data
"""

from kesoku_actors.protocol.attachments import (
    ATTACHMENTS,
    UNKNOWN_TYPE,
    Attachment,
    AttachmentState,
    attachments_in,
    awaits_attachments,
    expected,
)
from kesoku_actors.protocol.codec import DecodeError, decode, make_converter
from kesoku_actors.protocol.events import (
    Activity,
    ActivityChanged,
    ApprovalChanged,
    Changed,
    Delta,
    DeltaKind,
    Event,
    ModeChanged,
    Removed,
    StopEnded,
    ToolProgress,
)
from kesoku_actors.protocol.invalid import InvalidMessage
from kesoku_actors.protocol.jobs import WAKING, Approval, Job, JobEnding, JobState, job_id, job_number
from kesoku_actors.protocol.messages import (
    AGENT,
    ANONYMOUS,
    ASKS,
    ENDED,
    FAMILIES,
    LEAVES,
    MOVES,
    STAYS,
    SYSTEM,
    Draft,
    Inbound,
    Message,
    Outcome,
    Reason,
    Role,
    Status,
    Type,
)
from kesoku_actors.protocol.sessions import (
    BusyMode,
    CallState,
    Channel,
    SessionInfo,
    SessionState,
    Step,
    StepState,
    Stop,
    StoredStep,
    Usage,
    Waiting,
)
from kesoku_actors.protocol.tools import ToolSchema

__all__ = [
    "AGENT",
    "ANONYMOUS",
    "ASKS",
    "ATTACHMENTS",
    "ENDED",
    "FAMILIES",
    "LEAVES",
    "MOVES",
    "STAYS",
    "SYSTEM",
    "UNKNOWN_TYPE",
    "WAKING",
    "Activity",
    "ActivityChanged",
    "Approval",
    "ApprovalChanged",
    "Attachment",
    "AttachmentState",
    "BusyMode",
    "CallState",
    "Changed",
    "Channel",
    "DecodeError",
    "Delta",
    "DeltaKind",
    "Draft",
    "Event",
    "Inbound",
    "InvalidMessage",
    "Job",
    "JobEnding",
    "JobState",
    "Message",
    "ModeChanged",
    "Outcome",
    "Reason",
    "Removed",
    "Role",
    "SessionInfo",
    "SessionState",
    "Status",
    "Step",
    "StepState",
    "Stop",
    "StopEnded",
    "StoredStep",
    "ToolProgress",
    "ToolSchema",
    "Type",
    "Usage",
    "Waiting",
    "attachments_in",
    "awaits_attachments",
    "decode",
    "expected",
    "job_id",
    "job_number",
    "make_converter",
]
