"""The table of the zoo: every planted bug, its cause, what is noticed, and which tasks race."""

from __future__ import annotations

from typing import Final

from kesoku_actors.harness.zoo import acting, blocking, cancelling, endings, hard, lifetimes, ordering, ports
from kesoku_actors.harness.zoo.bug import Bug, Cause, Difficulty, Symptom

_EASY, _NORMAL, _HARD = Difficulty.EASY, Difficulty.NORMAL, Difficulty.HARD
_LOST, _TWICE, _WRONG, _ORDER = Symptom.LOST, Symptom.TWICE, Symptom.WRONG, Symptom.ORDER
_CRASH, _STUCK, _LATE = Symptom.CRASH, Symptom.STUCK, Symptom.LATE


# fmt: off
BUGS: Final = (
    Bug(ordering.reply_stored_first, Cause.MESSAGE_ORDER, _ORDER, _NORMAL, "the reply stands", "writer writer"),
    Bug(ordering.old_model, Cause.MESSAGE_ORDER, _WRONG, _EASY, "the old model", "switcher answerer"),
    Bug(ordering.update_before_creation, Cause.MESSAGE_ORDER, _CRASH, _EASY, "a paper was", "author clerk"),
    Bug(lifetimes.listener_after_post, Cause.LIFE_CYCLE, _STUCK, _EASY, "Deadlock", "bus listen"),
    Bug(lifetimes.mail_before_state, Cause.LIFE_CYCLE, _LOST, _EASY, "a message was handled", "load serve"),
    Bug(lifetimes.watch_after_death, Cause.LIFE_CYCLE, _STUCK, _EASY, "Deadlock", "child parent"),
    Bug(lifetimes.stop_before_scope, Cause.LIFE_CYCLE, _WRONG, _NORMAL, "a stopped child", "child stopper"),
    Bug(hard.registrar_clears_late, Cause.LIFE_CYCLE, _LOST, _HARD, "everybody", "registrar worker"),
    Bug(lifetimes.mail_in_hand, Cause.RESTART_LOSS, _LOST, _EASY, "the message in hand", "worker outage"),
    Bug(lifetimes.mailbox_replaced, Cause.RESTART_LOSS, _LOST, _NORMAL, "a letter", "supervisor main"),
    Bug(lifetimes.counted_twice, Cause.SUPERVISION, _TWICE, _EASY, "one failure", "child supervisor"),
    Bug(lifetimes.snapshot_of_the_dying, Cause.SUPERVISION, _WRONG, _EASY, "the successor", "predecessor successor"),
    Bug(lifetimes.restarted_after_stop, Cause.SUPERVISION, _WRONG, _NORMAL, "a child was", "keeper stopper"),
    Bug(endings.last_one_out, Cause.TERMINATION, _CRASH, _EASY, "ClosedResourceError", "worker worker"),
    Bug(endings.quiet_means_done, Cause.TERMINATION, _WRONG, _EASY, "the end was", "worker detector"),
    Bug(endings.reader_left, Cause.TERMINATION, _CRASH, _NORMAL, "BrokenResourceError", "reader sender person"),
    Bug(endings.evicted_session, Cause.STALE_REFERENCE, _LOST, _NORMAL, "a message was given", "door evictor"),
    Bug(endings.reused_slot, Cause.STALE_REFERENCE, _WRONG, _NORMAL, "another job", "jobs person"),
    Bug(endings.subscriber_left, Cause.STALE_REFERENCE, _CRASH, _EASY, "RuntimeError", "publisher subscriber"),
    Bug(hard.compaction_under_old_lease, Cause.STALE_REFERENCE, _LOST, _HARD, "an acknowledged", "writer compactor"),
    Bug(blocking.crossed_mailboxes, Cause.BLOCKING, _STUCK, _NORMAL, "Deadlock", "peer peer news"),
    Bug(blocking.call_back, Cause.BLOCKING, _STUCK, _NORMAL, "Deadlock", "actor actor"),
    Bug(blocking.lock_across_send, Cause.BLOCKING, _STUCK, _EASY, "Deadlock", "producer consumer"),
    Bug(hard.everybody_asks, Cause.BLOCKING, _STUCK, _HARD, "Deadlock", "actor actor actor"),
    Bug(acting.two_doors, Cause.CHECK_THEN_ACT, _TWICE, _NORMAL, "two actors", "door door"),
    Bug(acting.stale_cache, Cause.CHECK_THEN_ACT, _WRONG, _NORMAL, "an old value", "reader writer"),
    Bug(acting.overdrawn, Cause.CHECK_THEN_ACT, _WRONG, _NORMAL, "the purse", "turn turn"),
    Bug(cancelling.interrupted_worker, Cause.CANCELLATION, _LOST, _EASY, "a message was lost", "worker person"),
    Bug(cancelling.tool_before_shield, Cause.CANCELLATION, _WRONG, _NORMAL, "a tool", "thought person"),
    Bug(hard.both_interrupted, Cause.CANCELLATION, _LOST, _HARD, "both copies of", "worker worker person"),
    Bug(blocking.replaced_event, Cause.LOST_WAKEUP, _STUCK, _NORMAL, "Deadlock", "producer consumer"),
    Bug(blocking.stolen_wakeup, Cause.LOST_WAKEUP, _CRASH, _NORMAL, "IndexError", "consumer consumer"),
    Bug(blocking.one_signal_two_items, Cause.LOST_WAKEUP, _STUCK, _NORMAL, "Deadlock", "producer consumer"),
    Bug(hard.both_waiters_in_the_gap, Cause.LOST_WAKEUP, _STUCK, _HARD, "Deadlock", "worker worker poster"),
    Bug(acting.late_result, Cause.TIMER, _TWICE, _EASY, "the job ran", "caller job"),
    Bug(acting.renewed_and_reaped, Cause.TIMER, _WRONG, _EASY, "a renewed lease", "holder reaper"),
    Bug(acting.last_key_unsaved, Cause.TIMER, _LOST, _NORMAL, "the last key", "save_later typist"),
    Bug(acting.equal_stamps, Cause.TIMER, _ORDER, _EASY, "rows of one", "store person"),
    Bug(cancelling.permit_leak, Cause.LEAK, _STUCK, _NORMAL, "Deadlock", "impatient person"),
    Bug(cancelling.waiter_left_in_line, Cause.LEAK, _STUCK, _NORMAL, "Deadlock", "impatient person holder"),
    Bug(cancelling.connection_given_back_twice, Cause.LEAK, _TWICE, _NORMAL, "two share", "query borrower"),
    Bug(endings.grace_instead_of_join, Cause.SHUTDOWN, _CRASH, _NORMAL, "ClosedResourceError", "worker shutdown"),
    Bug(endings.accepted_after_drain, Cause.SHUTDOWN, _LOST, _NORMAL, "what was accepted", "door shutdown"),
    Bug(hard.message_in_the_last_gap, Cause.SHUTDOWN, _LOST, _HARD, "an accepted letter", "door closer"),
    Bug(ordering.snapshot_then_subscribe, Cause.SUBSCRIPTION, _LOST, _EASY, "an event was missed", "publisher viewer"),
    Bug(ordering.history_then_live, Cause.SUBSCRIPTION, _TWICE, _EASY, "an event was told", "author follower"),
    Bug(hard.both_viewers_in_the_gap, Cause.SUBSCRIPTION, _WRONG, _HARD, "both viewers", "viewer viewer publisher"),
    Bug(acting.seen_too_late, Cause.DUPLICATE, _TWICE, _NORMAL, "a message was applied", "deliver deliver"),
    Bug(acting.ack_before_store, Cause.DUPLICATE, _LOST, _NORMAL, "acknowledged", "receiver stopper"),
    Bug(acting.lease_ran_out, Cause.DUPLICATE, _TWICE, _NORMAL, "one job", "first second"),
    Bug(ordering.mixed_batches, Cause.BATCH, _ORDER, _NORMAL, "one batch", "early late"),
    Bug(ordering.half_transfer, Cause.BATCH, _LOST, _NORMAL, "money", "mover person"),
    Bug(hard.both_copies_torn, Cause.BATCH, _WRONG, _HARD, "both copies were", "writer writer reader"),
    Bug(blocking.stop_behind_backlog, Cause.STARVATION, _LATE, _NORMAL, "a stop waited", "producer person actor"),
    Bug(hard.promised_refill, Cause.STARVATION, _LATE, _HARD, "a promised refill", "steward client"),
    Bug(hard.changes_its_mind, Cause.STARVATION, _LATE, _HARD, "the dispatcher", "request " * 7),
    Bug(ports.account, Cause.SHARED_ORDER, _WRONG, _EASY, "the balance", "check_result deposit withdraw"),
    Bug(ports.bluetooth, Cause.SHARED_UPDATE, _CRASH, _NORMAL, "the driver", "adder stopper"),
    Bug(ports.carter01, Cause.LOCK_ORDER, _STUCK, _EASY, "Deadlock", "reader reader"),
    Bug(ports.circular_buffer, Cause.SHARED_UPDATE, _LOST, _NORMAL, "an element", "producer producer"),
    Bug(ports.deadlock01, Cause.LOCK_ORDER, _STUCK, _NORMAL, "Deadlock", "first second"),
    Bug(ports.lazy01, Cause.SHARED_ORDER, _CRASH, _EASY, "three were", "look add_one add_two"),
    Bug(ports.philosophers_31, Cause.LOCK_ORDER, _STUCK, _HARD, "Deadlock", "philosopher " * 31),
    Bug(ports.queue, Cause.SHARED_ORDER, _CRASH, _EASY, "another element", "enqueuer dequeuer"),
    Bug(ports.reorder_10, Cause.SHARED_ORDER, _CRASH, _EASY, "one value", "setter checker"),
    Bug(ports.sigma, Cause.SHARED_UPDATE, _WRONG, _EASY, "a place", "main thread"),
    Bug(ports.stack, Cause.SHARED_ORDER, _CRASH, _EASY, "the stack", "pusher popper"),
    Bug(ports.token_ring, Cause.SHARED_ORDER, _WRONG, _EASY, "the token", "station station"),
    Bug(ports.twostage_20, Cause.SHARED_UPDATE, _CRASH, _EASY, "the second stage", "writer reader"),
    Bug(ports.wronglock_3, Cause.SHARED_UPDATE, _LOST, _EASY, "an addition", "add add"),
)
# fmt: on
"""Every planted bug, the actor programs first; their names are all different."""
