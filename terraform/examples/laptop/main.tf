# A cluster on this machine, with no cloud account: `terraform apply` starts it, `terraform destroy` ends it.
# The "cloud" that it bursts to is pretended: real Ray nodes, made-up prices, no money.

terraform {
  required_version = ">= 1.11"
  required_providers {
    hybrid = {
      source  = "hybrid-burst/hybrid"
      version = ">= 0.1.0"
    }
  }
}

provider "hybrid" {}

variable "name" {
  description = "Names the cluster and its state folder."
  type        = string
  default     = "laptop"
}

resource "hybrid_cluster" "this" {
  name = var.name

  # What hybrid.yaml would say.
  config = yamlencode({
    head = { cpus = 1, port = "auto", dashboard_port = "auto", client_port = "off" }
    ray  = { object_store = "80MB" }
    onprem = {
      hosts = [{ name = "onprem-1", address = "local", accelerators = "GPU:1", cpus = 2 }]
    }
    controller = { tick = "1s" }
  })
}

resource "hybrid_cloud" "pretended" {
  cluster = hybrid_cluster.this.name
  name    = "pretended"
  drain   = "30s"

  # With a real cloud: hybrid_provider = module.aws.hybrid_provider
  hybrid_provider = {
    provider = "local"
    pools = [{
      infra        = "local"
      accelerators = "GPU:1"
      cpus         = 1
      usd_per_hour = 2.4
      max_nodes    = 1
      stock        = 1
      boot_delay   = "1s"
    }]
  }

  depends_on = [hybrid_burst_policy.this] # the caps come first
}

resource "hybrid_burst_policy" "this" {
  cluster       = hybrid_cluster.this.name
  max_wait      = "5s"
  stabilisation = "2s"
  idle_after    = "10s"
  min_life      = "10s"
  budget = {
    nodes       = 1
    usd_per_day = 20
  }
}

output "address" {
  description = "Where the controller listens; `hybrid status` finds it by itself."
  value       = hybrid_cluster.this.address
}

output "dashboard_url" {
  description = "Ray's dashboard."
  value       = hybrid_cluster.this.dashboard_url
}
