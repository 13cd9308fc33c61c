"""Compute Engine on loopback, checked request by request by Google's description of its API."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.emulators.gcp.auth import ServiceAccount
from tests.emulators.gcp.cloud import Cloud
from tests.emulators.gcp.faults import Faults
from tests.emulators.gcp.server import Api, Server

PROJECT = "test-project"


class GcpEmulator:
    """See `tests.emulators.Emulator`.

    Attributes:
        key_file: Credentials that it accepts, for GOOGLE_APPLICATION_CREDENTIALS.
    """

    def __init__(self, port: int = 0) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="gcp-emulator-"))
        account = ServiceAccount(PROJECT)
        self.key_file = account.write_key(self._folder / "key.json")
        self.api = Api(account)
        try:
            self._server = Server(self.api, port)
        except OSError:
            shutil.rmtree(self._folder)
            raise
        self.url = self._server.url

    @property
    def cloud(self) -> Cloud:
        """Its state, to look at and to change."""
        return self.api.cloud

    @property
    def faults(self) -> Faults:
        """What is to go wrong."""
        return self.api.faults

    @property
    def usage(self) -> str:
        return _USAGE.format(url=self.url, key_file=self.key_file, project=PROJECT)

    def stop(self) -> None:
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def start(port: int = 0) -> GcpEmulator:
    """Start one; see `tests.emulators.StartEmulator`."""
    return GcpEmulator(port)


_USAGE = """\
Point the adapter at it:
  export GOOGLE_APPLICATION_CREDENTIALS={key_file}
and in hybrid.yaml:
  providers:
    gcp:
      project: {project}
      image: projects/{project}/global/images/family/hybrid-node
      endpoint_url: {url}

Make it misbehave: no stock, no quota, throttled, a failure after acceptance, an answer that is
lost, slow lists, a spot instance taken back; and read what was asked:
  curl {url}/_control/capacity -d '{{"zone": "us-central1-a", "type": "g2-standard-8", "count": 0}}'
  curl {url}/_control/quota -d '{{"region": "us-central1", "metric": "NVIDIA_L4_GPUS", "limit": 0}}'
  curl {url}/_control/fault -d '{{"method": "instances.insert", "status": 429, "times": 3}}'
  curl {url}/_control/fault -d '{{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "takes_s": 20}}'
  curl {url}/_control/fault -d '{{"method": "instances.bulkInsert", "code": "STOCKOUT"}}'
  curl {url}/_control/fault -d '{{"is_after": true, "is_dropped": true}}'
  curl {url}/_control/cloud -d '{{"list_lag_s": 30, "provision_s": 40}}'
  curl {url}/_control/preempt -d '{{"zone": "us-central1-a", "name": "hybrid-..."}}'
  curl {url}/_control/log"""
