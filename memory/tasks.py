"""What the workers run: one job by its id, and the sweep that finds what was lost."""

import logging
from collections.abc import Callable
from uuid import UUID

from celery import shared_task
from celery.contrib.django.task import DjangoTask
from celery.exceptions import SoftTimeLimitExceeded

from accounts.errors import AppError, ProviderError, Unavailable
from memory import embedder, jobs, reembed, trash
from memory.jobs import Claim, Overtaken
from memory.learn import learn_person
from memory.models import Job
from memory.profile import write_profile
from memory.remember import remember_exchange

logger = logging.getLogger(__name__)

VERBS: dict[str, Callable[[Claim], None]] = {
    Job.Kind.REMEMBER: remember_exchange,
    Job.Kind.EMBED: reembed.embed_missing,
    Job.Kind.LEARN: learn_person,
    Job.Kind.PROFILE: write_profile,
    Job.Kind.TRASH: trash.empty,
}


@shared_task(base=DjangoTask, acks_late=True)
def run_job(job_id: str) -> None:
    """Do one unit of background work; a second runner finds nothing to claim."""
    claimed = jobs.claim(UUID(job_id))
    if claimed is None:
        return
    try:
        _give_up_what_kills(claimed)
        embedder.follow()
        VERBS[claimed.kind](claimed)
    except Overtaken:
        logger.info("job %s was overtaken", claimed.id)
        return
    except ProviderError as error:
        jobs.release(claimed, error)
    except SoftTimeLimitExceeded:
        jobs.release(claimed, Unavailable("It took too long.", code="too_slow"))
    except Exception:
        logger.exception("job %s failed", claimed.id)
        jobs.release(claimed, AppError())
    jobs.tell(claimed)


def _give_up_what_kills(claimed: Claim) -> None:
    """Raise Unavailable for a job that has taken its worker with it in each of its tries."""
    if claimed.taken_over and claimed.attempts > jobs.ATTEMPTS:
        raise Unavailable("The worker was lost in the middle of it.", code="worker_lost")


@shared_task(base=DjangoTask)
def sweep() -> None:
    """Hint again at what is due; see whether the embedder or the provider is another one."""
    jobs.sweep()
    try:
        reembed.notice_another_embedder()
    except ProviderError as error:  # the memory provider is away; the next sweep tries again
        logger.warning("nobody's memories were queued: %s", error.code)
