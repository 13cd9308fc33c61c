"""The launch of a gang: several instances of one zone in one call, all or none.

Google's promise (its description of `BulkInsertInstanceResource.minCount`): "If min_count
instances cannot be created, then no instances will be created and instances already created will
be deleted." A refusal is said only after a look at each name has shown that this was kept; what
is left is deleted before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hybrid.core.errors import ConflictError, NotFoundError, ProviderError, TransientError
from hybrid.core.models import LaunchSpec
from providers.gcp.errors import refused
from providers.gcp.launching import Launcher, request_id, wait
from providers.gcp.naming import INSTANCE_TAG, TOKEN_LABEL, Place, owned_instance_id, token_mark
from providers.gcp.resources import Machine, Operation


def check_gang(
    specs: Sequence[LaunchSpec], join_tokens: Mapping[str, str], *, most_count: int
) -> None:
    """Raise `ValueError` unless these are the specs of one gang, whole and alike."""
    ids = [spec.instance_id for spec in specs]
    if not 1 <= len(ids) <= most_count:
        raise ValueError(f"a gang of {len(ids)} cannot be; it has 1 to {most_count} instances")
    if len(set(ids)) < len(ids) or any(sorted(spec.gang) != sorted(ids) for spec in specs):
        raise ValueError(f"the specs of {', '.join(ids)} do not name each other as one gang")
    if missing := [i for i in ids if i not in join_tokens]:
        raise ValueError(f"{missing[0]} has no join token")
    first = _without_own(specs[0])
    if any(_without_own(spec) != first for spec in specs):
        raise ValueError("the specs of a gang differ in more than the instance's id")


def _without_own(spec: LaunchSpec) -> LaunchSpec:
    tags = {key: value for key, value in spec.tags.items() if key != INSTANCE_TAG}
    return spec.model_copy(update={"instance_id": "", "tags": tags})


@dataclass(frozen=True)
class GangLauncher:
    """Launches gangs. Any thread may call it.

    Attributes:
        single: How single machines are launched: the waiting and the memory are the same.
    """

    single: Launcher

    def launch(
        self, places: Mapping[str, Place], body: Mapping[str, object], *, token: str
    ) -> None:
        """Launch the machines of `places`, by our ids; returns when they are proved to exist.

        Raises as `GangProvider.launch_gang`.
        """
        client, undecided = self.single.client, self.single.undecided
        asked = list(places.values())
        doing = f"launch {len(asked)} instances in {asked[0].zone}"
        try:
            operation = client.bulk_insert(asked, body, request_id=request_id(token))
        except ConflictError as err:
            self._check_whole(asked, token, err, doing)
            return
        for instance_id, place in places.items():
            undecided.add(place, instance_id, operation)
        operation = self.single.end_of(operation)
        if not operation.is_done:
            raise self.single.pending(doing)
        if operation.failures and not self._is_whole_already(asked, token, operation, doing):
            undecided.forget(asked)
            raise refused(operation.failures, provider=client.provider, doing=doing)
        undecided.forget(asked)

    # --- proofs ---------------------------------------------------------------------------

    def _check_whole(
        self, asked: Sequence[Place], token: str, err: ConflictError, doing: str
    ) -> None:
        """Raise unless all machines that have our names came from this very token."""
        found = self._found(asked, doing)
        own = self._of_token(found, token)
        if len(own) < len(found):
            taken = next(machine.place for machine in found if machine not in own)
            text = f"{taken} exists already, from another launch"
            raise ConflictError(text, provider=err.provider, code=err.code) from err
        if len(own) < len(asked):
            raise self._in_parts(len(own), len(asked), doing) from err

    def _is_whole_already(
        self, asked: Sequence[Place], token: str, operation: Operation, doing: str
    ) -> bool:
        """Return whether a failed launch failed because its machines were all there before.

        Google may have forgotten the request id of the call that made them. If not, this
        deletes what the failed launch has left, and raises unless nothing is left any more.
        """
        own = self._of_token(self._found(asked, doing), token)
        asked_at_s = operation.asked_at_s
        # Never what an earlier call has made: jobs may run there.
        if any(asked_at_s is None or machine.created_at_s < asked_at_s for machine in own):
            if len(own) == len(asked):
                return True
            raise self._in_parts(len(own), len(asked), doing)
        self._end([machine.place for machine in own], doing)
        return False

    def _found(self, asked: Iterable[Place], doing: str) -> list[Machine]:
        """Return what exists under our names, whosever it is. A list could lack some of it."""
        found = []
        for place in asked:
            try:
                found.append(self.single.client.get(place))
            except NotFoundError:
                continue
            except ProviderError as err:
                text = f"what became of it could not be looked at: {err}"
                raise self.single.unknown(doing, text) from err
        return found

    def _of_token(self, found: Iterable[Machine], token: str) -> list[Machine]:
        cluster_id, mark = self.single.cluster_id, token_mark(token)
        return [
            machine
            for machine in found
            if machine.labels.get(TOKEN_LABEL) == mark
            and owned_instance_id(machine.labels, machine.place.name, cluster_id=cluster_id)
        ]

    def _end(self, places: Sequence[Place], doing: str) -> None:
        """Delete machines; raise unless they are all gone. All are asked for before any wait."""
        client, clock = self.single.client, self.single.clock
        operations: list[Operation] = []
        problems: list[ProviderError] = []
        for place in places:
            try:
                operations.append(client.delete(place))
            except NotFoundError:
                continue
            except ProviderError as err:
                problems.append(err)
        end_s = clock.monotonic_s() + self.single.wait_s
        for operation in operations:
            try:
                left_s = max(0.0, end_s - clock.monotonic_s())
                done = wait(client, operation, clock=clock, limit_s=left_s)
            except ProviderError as err:
                problems.append(err)
                continue
            if done.failures or not done.is_done:
                problems.append(self.single.unknown(f"delete {places[0]}", "not done yet"))
        for problem in problems:
            text = f"failed, and what is left of it is not ended yet: {problem}"
            raise self.single.unknown(doing, text) from problem

    def _in_parts(self, count: int, all_count: int, doing: str) -> TransientError:
        text = (
            f"{count} of {all_count} exist, from an earlier call with this token; they are left "
            "as they are, and shown in the list"
        )
        return self.single.unknown(doing, text)
