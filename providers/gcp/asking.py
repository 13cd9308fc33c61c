"""What a launch asks Google for: names, labels, script and body, from what is to be rented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pydantic import ValidationError

from hybrid.core.errors import InvalidRequestError
from hybrid.core.models import LaunchSpec, Offer
from providers.gcp.gangs import check_gang
from providers.gcp.naming import Place, gang_labels_of, instance_name, labels_of
from providers.gcp.params import Params, Pool
from providers.gcp.request import Json, gang_body, instance_body
from providers.gcp.userdata import gang_script, machines_url, startup_script


def place_of(params: Params, pool: Pool, spec: LaunchSpec) -> Place:
    """Return where an instance will be, under the one name that it can have."""
    name = instance_name(spec.cluster_id, spec.instance_id, spec.attempt)
    return Place(params.project, pool.zone, name)


def single(
    params: Params, pool: Pool, offer: Offer, spec: LaunchSpec, *, token: str, join_token: str
) -> Json:
    """Return the body of the call that creates one instance.

    Raises:
        ValueError: Google, or the node's start, cannot take a value.
    """
    return instance_body(
        pool,
        place_of(params, pool, spec),
        project=params.project,
        labels=labels_of(spec, token=token, extra=params.tags),
        script=startup_script(
            offer,
            spec,
            join_token=join_token,
            python=pool.python,
            preflight=pool,
            delete_at=_own_end(params, pool),
        ),
        expires_at_s=spec.expires_at_s,
    )


def gang(
    params: Params,
    pool: Pool,
    offer: Offer,
    specs: Sequence[LaunchSpec],
    *,
    token: str,
    join_tokens: Mapping[str, str],
) -> Json:
    """Return the body of the call that creates an instance for each spec.

    Raises:
        ValueError: As `single`, or the specs are not those of one gang.
    """
    check_gang(specs, join_tokens, most_count=offer.max_gang)
    names = {spec.instance_id: place_of(params, pool, spec).name for spec in specs}
    first = specs[0]
    return gang_body(
        pool,
        names.values(),
        project=params.project,
        labels=gang_labels_of(first, token=token, extra=params.tags),
        script=gang_script(
            offer,
            first,
            names=names,
            join_tokens=join_tokens,
            python=pool.python,
            preflight=pool,
            delete_at=_own_end(params, pool),
        ),
        expires_at_s=first.expires_at_s,
    )


def _own_end(params: Params, pool: Pool) -> str:
    """Return where a machine of the pool may ask to be deleted; `""` for nowhere."""
    if not pool.service_account or not pool.delete_itself:
        return ""
    return machines_url(params.endpoint_url, project=params.project, zone=pool.zone)


@contextmanager
def refusing(provider: str) -> Iterator[None]:
    """Turn values that cannot be into the port's error, before any call."""
    try:
        yield
    except ValidationError as err:
        message = "; ".join(item["msg"] for item in err.errors(include_url=False))
        raise InvalidRequestError(message, provider=provider) from err
    except ValueError as err:
        raise InvalidRequestError(str(err), provider=provider) from err
