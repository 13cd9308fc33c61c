"""Putting the controller together."""

from __future__ import annotations

import os
import platform
import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import hybrid
from hybrid.adapters.decision_files import FOLDER, DecisionFiles
from hybrid.adapters.job_logs import JobLogFolder
from hybrid.adapters.kit import kit_package
from hybrid.adapters.ledger import SqlLedger
from hybrid.adapters.local_jobs import LocalJobs
from hybrid.adapters.own_log import OwnLog
from hybrid.adapters.packages import PackageFolder
from hybrid.adapters.ray import RayCluster
from hybrid.adapters.state import StateFolder
from hybrid.app import makers
from hybrid.app.base import LocalBase
from hybrid.app.services import watch_services
from hybrid.app.translate import control_params, ray_options
from hybrid.client.discover import LOG_NAME
from hybrid.control import log
from hybrid.control.act import Actor
from hybrid.control.base import Base
from hybrid.control.book import Book
from hybrid.control.calling import CalledProvider
from hybrid.control.closing import Closer
from hybrid.control.clouds import Clouds
from hybrid.control.desk import Desk
from hybrid.control.finish import Finisher
from hybrid.control.launching import Launcher
from hybrid.control.loop import Loop
from hybrid.control.mailbox import Mailbox
from hybrid.control.observe import RayEye, Reconciler
from hybrid.control.params import ClusterFacts
from hybrid.control.recorder import NoRecorder
from hybrid.control.resting import Resting
from hybrid.control.runner import Runner
from hybrid.control.together import AtOnce
from hybrid.core.ports import Clock, Provider
from hybrid.core.views import ClusterInfo
from hybrid.jobs.dispatch import Dispatcher
from hybrid.settings import Settings, dump, environment

_log = log.get(__name__)


@dataclass
class Controller:
    """A controller, ready to run.

    Attributes:
        closers: End its connections to Ray, and what it writes beside the ledger.
    """

    runner: Runner
    desk: Desk
    ledger: SqlLedger
    closers: tuple[Callable[[], None], ...] = ()

    def close(self) -> None:
        """End its connections: to Ray, then to the ledger."""
        for close in (*self.closers, self.ledger.close):
            close()


def make_providers(
    settings: Settings, state: StateFolder, ray_dir: Path, *, cluster_id: str, clock: Clock
) -> list[Provider]:
    """Return the configured providers, found by entry point.

    Raises:
        ConfigError: A provider refuses its settings; the error names the place in the file.
    """
    folder = state.path / "providers"
    for name in settings.provider_names:
        (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    made = makers.make_providers(settings, folder, ray_dir, cluster_id=cluster_id, clock=clock)
    return list(made.values())


def make_controller(
    settings: Settings,
    state: StateFolder,
    base: LocalBase,
    *,
    ledger: SqlLedger,
    providers: Sequence[Provider],
    url: str,
    clock: Clock,
) -> Controller:
    """Return a controller over real adapters; starts nothing but the watch over services."""
    params = control_params(settings, state.path)
    secret = bytes.fromhex(state.secret("join_secret"))
    mailbox = Mailbox()
    cluster = RayCluster(base.head_address, base.ray_token)
    ray_jobs = LocalJobs(
        base.dashboard_url,
        base.ray_token,
        address=base.head_address,
        ray_dir=base.ray_dir,
        clock=clock,
    )
    logs = JobLogFolder(state.path / "job_logs")
    book = Book(ledger, clock, params.deadlines)
    rng = random.Random()
    called = [
        CalledProvider(provider, clock, rng, check=ledger.check_epoch) for provider in providers
    ]
    clouds = Clouds(called, clock, together=AtOnce())
    eye = RayEye(cluster, clock)
    the_base = Base(
        base.head, base.fleet, clock, shapes=base.shapes, labels=base.labels, together=AtOnce()
    )
    facts = ClusterFacts(
        name=settings.name,
        cluster_id=ledger.cluster_id,
        head_address=base.head_address,
        controller_url=url,
        ray_version=version("ray"),
        python_version=platform.python_version(),
        ray=ray_options(settings, is_shared=False),
    )
    launcher = Launcher(
        book=book,
        clouds=clouds,
        clock=clock,
        params=params,
        facts=facts,
        new_id=lambda: f"i-{secrets.token_hex(5)}",
        secret=secret,
        resting=Resting(book, clock, params, rng),
    )
    actor = Actor(book=book, cluster=cluster, clock=clock, params=params, launcher=launcher)
    finisher = Finisher(book, clouds, actor, clock, params)
    packages = PackageFolder(state.path / "packages", clock)
    jobs = Dispatcher(
        ledger,
        ray_jobs,
        packages,
        logs,
        clock,
        params.queue,
        policy=params.policy.jobs,
        kit=kit_package,
    )
    files = _decision_files(settings, state)
    services = watch_services(
        settings,
        environment(),
        clock,
        head_address=base.head_address,
        ray_token=base.ray_token,
        tell=book.record,
    )
    loop = Loop(
        book=book,
        base=the_base,
        clouds=clouds,
        ray=eye,
        reconciler=Reconciler(book, clouds, eye, clock, params),
        actor=actor,
        finisher=finisher,
        closer=Closer(book, clouds, actor, finisher, the_base, jobs, clock),
        jobs=jobs,
        clock=clock,
        params=params,
        recorder=files or NoRecorder(),
        slo=services.watch,
    )
    desk = Desk(
        loop=loop,
        ledger=ledger,
        runner=ray_jobs,
        packages=packages,
        logs=logs,
        mailbox=mailbox,
        clock=clock,
        ray_token=base.ray_token,
        secret=secret,
        new_job_id=lambda: f"job-{secrets.token_hex(5)}",
        info=ClusterInfo(
            name=settings.name,
            cluster_id=ledger.cluster_id,
            version=hybrid.__version__,
            ray_version=facts.ray_version,
            python_version=facts.python_version,
            head_address=base.head_address,
            dashboard_url=base.dashboard_url,
            config_path=str(settings.origin.file or settings.source),
            started_at_s=clock.now_s(),
        ),
        settings=dump(settings),
        pid=os.getpid(),
    )
    runner = Runner(
        loop, desk, mailbox, clock, before_tick=OwnLog(state.path / LOG_NAME).keep_small
    )
    ends = (*services.closers, *((files.close,) if files else ()))
    closers = (cluster.close, ray_jobs.close, *ends)
    return Controller(runner, desk, ledger, closers)


def _decision_files(settings: Settings, state: StateFolder) -> DecisionFiles | None:
    kept_s = settings.controller.record
    if kept_s == "off":
        return None
    return DecisionFiles(
        state.path / FOLDER,
        version=hybrid.__version__,
        kept_s=kept_s,
        tell=lambda why: _log.warning("decisions_not_recorded", reason=why),
    )
