"""Google Cloud: the script that a gang's machines share, run by a real bash as each of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hybrid.node.orders import parse
from providers.gcp.offers import MOST_TOGETHER
from providers.gcp.userdata import LIMIT_BYTES, gang_script, machines_url
from tests.providers.test_gcp_userdata import NASTY, SPEC, Machine, an_offer

pytestmark = pytest.mark.slow

NAMES = {"i-1": "hybrid-i-1-aa", "i-2": "hybrid-i-2-bb", "i-3": "hybrid-i-3-cc"}
TOKENS = {"i-1": "token-1", "i-2": NASTY, "i-3": "token-3"}


class Member(Machine):
    """A machine that gets its name from the metadata server, beside its lease."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path)
        self.answer(f"printf %s {name}")

    def answer(self, words: str) -> None:
        """Set what the metadata server does when it is asked for the name."""
        self.command("curl", f'[[ "${{!#}}" == */instance/name ]] || exit 22\n{words}')

    def boot_as_member(self, **changes: str) -> None:
        self.run(
            gang_script(
                an_offer(),
                SPEC.model_copy(update={"gang": tuple(NAMES), **changes}),
                names=NAMES,
                join_tokens=TOKENS,
                python=self.python,
                folder=str(self.folder),
                look_s=0.05,
                pause_s=0.01,
            )
        )


@pytest.mark.parametrize("instance_id", sorted(NAMES))
def test_each_machine_is_the_member_that_its_name_says(tmp_path: Path, instance_id: str) -> None:
    machine = Member(tmp_path, NAMES[instance_id])

    machine.boot_as_member()

    orders = parse(json.loads(machine.read("node.json")))
    assert orders.id == instance_id
    assert orders.env["RAY_CLOUD_INSTANCE_ID"] == instance_id
    assert orders.join is not None
    assert orders.join.instance_id == instance_id
    assert machine.read("join_token") == TOKENS[instance_id]
    assert machine.read("lease") == "4000000000.000"
    assert not list(tmp_path.rglob("pwned"))


def test_a_member_is_told_what_a_single_machine_is_told(tmp_path: Path) -> None:
    for name in ("alone", "member"):
        (tmp_path / name).mkdir()
    alone, member = Machine(tmp_path / "alone"), Member(tmp_path / "member", NAMES["i-1"])
    changes = {"controller_url": f"http://{NASTY}", "cluster_id": NASTY}

    alone.boot(SPEC.model_copy(update=changes), join_token="token-1")
    member.boot_as_member(**changes)

    def told(machine: Machine) -> str:
        return machine.read("node.json").replace(str(machine.path), "")

    assert told(member) == told(alone)
    assert member.read("join_token") == alone.read("join_token")


def test_a_metadata_server_that_is_slow_to_come_up_is_asked_again(tmp_path: Path) -> None:
    machine = Member(tmp_path, "")
    machine.answer(
        f"echo x >> asked; [[ $(wc -l < asked) -gt 3 ]] || exit 7; printf %s {NAMES['i-2']}"
    )

    machine.boot_as_member()

    assert parse(json.loads(machine.read("node.json"))).id == "i-2"


@pytest.mark.parametrize(
    "words", ["printf %s hybrid-i-9-zz", "exit 7"], ids=["stranger", "silence"]
)
def test_a_machine_that_is_no_member_turns_itself_off(tmp_path: Path, words: str) -> None:
    machine = Member(tmp_path, "")
    machine.answer(words)

    machine.boot_as_member()

    assert (tmp_path / "powered-off").exists()
    assert not (tmp_path / "python.args").exists()
    assert not (machine.folder / "join_token").exists()


def test_the_script_of_the_largest_gang_is_small() -> None:
    ids = [f"i-{'f' * 28}{n:02}" for n in range(MOST_TOGETHER)]

    script = gang_script(
        an_offer(),
        SPEC,
        names={i: f"hybrid-{i}-{'0' * 12}" for i in ids},
        join_tokens=dict.fromkeys(ids, "x" * 64),
        python="/opt/hybrid/bin/python",
        delete_at=machines_url("", project="p" * 30, zone="us-central1-a"),
    )

    assert len(script.encode()) < LIMIT_BYTES * 0.7
