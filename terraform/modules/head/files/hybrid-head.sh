#!/bin/bash
# Starts the controller with the configuration that Terraform keeps in Parameter Store.
set -euo pipefail
cd "$RUNTIME_DIRECTORY"
/opt/hybrid/bin/python /opt/hybrid/bin/hybrid-fetch "/hybrid/$HEAD_CLUSTER/head/hybrid.yaml" >hybrid.yaml
/opt/hybrid/bin/python /opt/hybrid/bin/hybrid-fetch "/hybrid/$HEAD_CLUSTER/head/outputs.json" >outputs.json
if [ "$HEAD_LEDGER" != none ]; then
  HYBRID_LEDGER_URL=$(/opt/hybrid/bin/python /opt/hybrid/bin/hybrid-fetch "$HEAD_LEDGER")
  export HYBRID_LEDGER_URL
fi
if [ "$(cat outputs.json)" = "{}" ]; then
  exec /opt/hybrid/bin/hybrid up hybrid.yaml --yes --foreground --from-terraform none
fi
exec /opt/hybrid/bin/hybrid up hybrid.yaml --yes --foreground --from-terraform - <outputs.json
