variable "name" {
  description = "Name of the cluster, as `name:` in hybrid.yaml. It is in the name of every object here."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,23}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 25 lower-case letters, digits or hyphens, beginning with a letter and not ending with a hyphen."
  }
}

variable "other_names" {
  description = "Names of the other networks of this module in the same project, when one configuration has several: each needs a name of its own."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = !contains(var.other_names, var.name)
    error_message = "name is that of another network in this configuration too; give each module a name of its own, since the accounts and roles of a project share one list."
  }
}

variable "project" {
  description = "Id of the project that pays. One for hybrid alone is best: Google's IAM conditions see the names of instances, which begin with `hybrid-` in every cluster."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "project must be the id of a project, 6 to 30 lower-case letters, digits or hyphens, such as my-project."
  }
}

variable "region" {
  description = "Region of the subnetwork, the bucket and all pools."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]+-[a-z]+[0-9]+$", var.region))
    error_message = "region must be a region of Google Cloud, such as us-central1."
  }
}

variable "tags" {
  description = "Google's labels of every object, and of every instance that hybrid rents."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([
      for key, value in var.tags :
      can(regex("^[a-z][a-z0-9_-]{0,62}$", key)) && can(regex("^[a-z0-9_-]{0,63}$", value)) && !startswith(key, "hybrid-")
    ])
    error_message = "tags must be labels of Google Cloud: up to 63 lower-case letters, digits, underscores or hyphens, the key beginning with a letter and not with hybrid-."
  }
  validation {
    condition     = length(var.tags) <= 40
    error_message = "tags must be 40 at most: Google takes 64, and hybrid adds its own."
  }
}

# --- what is rented ---------------------------------------------------------------------------

variable "pools" {
  description = "What hybrid may rent, in order of preference: a machine type in a zone. Of types that hybrid's catalog does not know, accelerators, cpus and memory say what is inside."
  type = list(object({
    instance_type = string
    zone          = string
    accelerators  = optional(string)
    attached_gpu  = optional(string)
    cpus          = optional(number)
    memory        = optional(string)
    use_spot      = optional(bool, false)
    max_nodes     = optional(number)
    usd_per_hour  = optional(number)
  }))
  nullable = false

  validation {
    condition     = length(var.pools) > 0
    error_message = "pools must name at least one machine type, such as [{ instance_type = \"g2-standard-8\", zone = \"us-central1-a\" }]."
  }
  validation {
    condition     = alltrue([for pool in var.pools : can(regex("^[a-z][a-z0-9-]{0,61}[a-z0-9]$", pool.instance_type))])
    error_message = "pools must have machine types of Google Cloud, such as g2-standard-8."
  }
  validation {
    condition     = alltrue([for pool in var.pools : can(regex("^${var.region}-[a-z][a-z0-9]*$", pool.zone))])
    error_message = "pools must all be in zones of ${var.region}, the region of this module; found ${join(", ", var.pools[*].zone)}."
  }
  validation {
    condition     = alltrue([for pool in var.pools : try(pool.max_nodes >= 0 && floor(pool.max_nodes) == pool.max_nodes, pool.max_nodes == null)])
    error_message = "pools must have a max_nodes that is a whole number from 0."
  }
  validation {
    condition     = alltrue([for pool in var.pools : try(pool.usd_per_hour > 0, pool.usd_per_hour == null)])
    error_message = "pools must have prices above 0."
  }
  validation {
    condition     = alltrue([for pool in var.pools : pool.attached_gpu == null || pool.accelerators != null])
    error_message = "pools with attached_gpu must say how many in accelerators, such as T4:1."
  }
  validation {
    condition     = length(distinct([for pool in var.pools : join("/", [pool.instance_type, pool.zone, pool.use_spot])])) == length(var.pools)
    error_message = "pools must differ in machine type, zone or market: two are the same."
  }
}

variable "image" {
  description = "Image of the nodes, with the GPU driver, Ray and hybrid. Null leaves it to hybrid.yaml, and makes no instance template."
  type        = string
  default     = null

  validation {
    condition     = var.image == null || can(regex("^projects/[a-z0-9.:-]+/global/images/(family/)?[a-z0-9-]+$", var.image))
    error_message = "image must be an image of Google Cloud, such as projects/my-project/global/images/family/hybrid-node."
  }
}

variable "disk_gib" {
  description = "Size of a node's boot disk in GiB."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.disk_gib >= 10 && var.disk_gib <= 65536 && floor(var.disk_gib) == var.disk_gib
    error_message = "disk_gib must be a whole number from 10 to 65536."
  }
}

variable "disk_type" {
  description = "Type of a node's boot disk."
  type        = string
  default     = "pd-balanced"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", var.disk_type))
    error_message = "disk_type must be a type of disk, such as pd-balanced."
  }
}

variable "max_life_hours" {
  description = "Google itself deletes a node that ran this long, whoever is alive. Null leaves it to hybrid.yaml."
  type        = number
  default     = null

  validation {
    condition     = try(var.max_life_hours >= 1 && var.max_life_hours <= 2880 && floor(var.max_life_hours) == var.max_life_hours, var.max_life_hours == null)
    error_message = "max_life_hours must be a whole number from 1 to 2880, which are 120 days."
  }
}

# --- network ----------------------------------------------------------------------------------

variable "create_network" {
  description = "Whether to make a network. With false, subnetwork says which one to use."
  type        = bool
  default     = true
  nullable    = false
}

variable "subnetwork" {
  description = "Subnetwork to use, when create_network is false. In another project (Shared VPC) its owner makes the firewall rules and lets the launcher use it."
  type        = string
  default     = null

  validation {
    condition     = var.create_network || can(regex("^projects/[a-z0-9.:-]+/regions/${var.region}/subnetworks/[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", var.subnetwork))
    error_message = "subnetwork must be one of ${var.region}, such as projects/my-project/regions/${var.region}/subnetworks/nodes, when create_network is false."
  }
  validation {
    condition     = !var.create_network || var.subnetwork == null
    error_message = "subnetwork is for a network that exists; set create_network = false, or leave subnetwork out."
  }
}

variable "cidr_block" {
  description = "Addresses of the subnetwork that is made: /8 to /28, apart from those of every site it is joined with."
  type        = string
  default     = "10.72.0.0/16"
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.cidr_block)) && try(cidrhost(var.cidr_block, 0) == split("/", var.cidr_block)[0], false)
    error_message = "cidr_block must be a range of IPv4 addresses that begins at its first address, such as 10.72.0.0/16."
  }
  validation {
    condition     = try(tonumber(split("/", var.cidr_block)[1]) >= 8 && tonumber(split("/", var.cidr_block)[1]) <= 28, true)
    error_message = "cidr_block must be from /8 to /28: every node has an address in it."
  }
}

variable "nat_gateway" {
  description = "Whether nodes reach the internet through Cloud NAT, which costs by the hour and byte. Without it the image must hold all that is needed; Google's own APIs are reached anyway."
  type        = bool
  default     = true
  nullable    = false
}

variable "on_prem_cidrs" {
  description = "Addresses of the own machines and of the head. They and the nodes may reach one another; nobody else may reach a node."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for cidr in var.on_prem_cidrs : can(cidrnetmask(cidr)) && try(cidrhost(cidr, 0) == split("/", cidr)[0], false)])
    error_message = "on_prem_cidrs must be ranges of IPv4 addresses that begin at their first address, such as 192.168.0.0/24."
  }
  validation {
    condition     = alltrue([for cidr in var.on_prem_cidrs : try(tonumber(split("/", cidr)[1]) >= 8, true)])
    error_message = "on_prem_cidrs must be your own networks, /8 or smaller; 0.0.0.0/0 would open the nodes to the internet."
  }
  validation {
    # Two ranges overlap when they are the same up to the shorter prefix.
    condition = !var.create_network || alltrue([
      for cidr in var.on_prem_cidrs : try(
        tonumber(split("/", cidr)[1]) < 8 || cidrhost("${split("/", cidr)[0]}/${min(split("/", cidr)[1], split("/", var.cidr_block)[1])}", 0)
        != cidrhost("${split("/", var.cidr_block)[0]}/${min(split("/", cidr)[1], split("/", var.cidr_block)[1])}", 0),
        true
      )
    ])
    error_message = "on_prem_cidrs and cidr_block (${var.cidr_block}) must not overlap: nothing could be routed between them."
  }
}

variable "node_ports" {
  description = "TCP ports of the nodes that on_prem_cidrs may reach. Narrow it to Ray's fixed ports and `ray.worker_ports` when those are set in hybrid.yaml."
  type        = list(object({ from = number, to = number }))
  default     = [{ from = 1024, to = 65535 }]
  nullable    = false

  validation {
    condition     = alltrue([for range in var.node_ports : range.from >= 1 && range.from <= range.to && range.to <= 65535])
    error_message = "node_ports must be ranges of ports from 1 to 65535, the lower one first."
  }
}

variable "egress_ports" {
  description = "TCP ports of the internet that nodes may reach: packages, images, object storage."
  type        = list(number)
  default     = [443]
  nullable    = false

  validation {
    condition     = length(var.egress_ports) > 0 && alltrue([for port in var.egress_ports : port >= 1 && port <= 65535 && floor(port) == port])
    error_message = "egress_ports must be ports from 1 to 65535, at least one: without 443 a node reaches neither Google's APIs nor the bucket."
  }
}

variable "iap_ssh" {
  description = "Whether people may reach SSH on the nodes through Identity-Aware Proxy, with Google's login and no public address."
  type        = bool
  default     = false
  nullable    = false
}

variable "vpn" {
  description = "A site-to-site VPN (HA VPN, two tunnels, BGP) to the own machines: the public address of the device there, and its ASN. Null makes none."
  type = object({
    address = string
    asn     = optional(number, 65000)
  })
  default = null

  validation {
    condition     = var.vpn == null || can(cidrnetmask("${var.vpn.address}/32"))
    error_message = "vpn must have the public IPv4 address of your device, such as 203.0.113.10."
  }
  validation {
    condition     = try(var.vpn.asn != var.cloud_asn && var.vpn.asn >= 1 && var.vpn.asn <= 4294967294, var.vpn == null)
    error_message = "vpn must have an ASN from 1 to 4294967294 that is not cloud_asn (${var.cloud_asn})."
  }
  validation {
    condition     = var.vpn == null || var.create_network
    error_message = "vpn is for a network that is made here; join one that exists as its owner does."
  }
  validation {
    condition     = var.vpn == null || length(var.on_prem_cidrs) > 0
    error_message = "vpn needs on_prem_cidrs: the addresses that may come through it."
  }
}

variable "vpn_secret" {
  description = "Shared secret of the VPN's tunnels, for example from TF_VAR_vpn_secret. It is in neither the plan nor the state; to change it raise vpn_secret_version too."
  type        = string
  default     = null
  ephemeral   = true

  validation {
    condition     = var.vpn == null || try(length(var.vpn_secret) >= 20, false)
    error_message = "vpn_secret must have 20 characters or more when there is a vpn; put it into TF_VAR_vpn_secret."
  }
}

variable "vpn_secret_version" {
  description = "A number to raise when vpn_secret changes: Terraform does not remember the secret."
  type        = number
  default     = 1
  nullable    = false
}

variable "cloud_asn" {
  description = "ASN of the cloud's side of the VPN."
  type        = number
  default     = 64514
  nullable    = false

  validation {
    condition     = (var.cloud_asn >= 64512 && var.cloud_asn <= 65534) || (var.cloud_asn >= 4200000000 && var.cloud_asn <= 4294967294)
    error_message = "cloud_asn must be a private ASN: 64512 to 65534, or 4200000000 to 4294967294."
  }
}

# --- data -------------------------------------------------------------------------------------

variable "create_bucket" {
  description = "Whether to make the bucket of checkpoints. With false, bucket says which one to use."
  type        = bool
  default     = true
  nullable    = false
}

variable "bucket" {
  description = "Name of the bucket. Null, with create_bucket, is PROJECT-NAME-data."
  type        = string
  default     = null

  validation {
    condition     = var.bucket == null || can(regex("^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "bucket must be 3 to 63 lower-case letters, digits, dots, underscores or hyphens."
  }
  validation {
    condition     = var.create_bucket || var.bucket != null
    error_message = "bucket must name one that exists when create_bucket is false."
  }
}

variable "kms_key" {
  description = "Cloud KMS key of the bucket. Null uses Google's own. Cloud Storage's service agent must be allowed to use it."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key == null || can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "kms_key must be a key, such as projects/my-project/locations/us-central1/keyRings/RING/cryptoKeys/KEY."
  }
}

variable "expire_checkpoints_after_days" {
  description = "After how many days without a change a checkpoint is deleted. Null keeps all."
  type        = number
  default     = null

  validation {
    condition     = try(var.expire_checkpoints_after_days >= 1 && floor(var.expire_checkpoints_after_days) == var.expire_checkpoints_after_days, var.expire_checkpoints_after_days == null)
    error_message = "expire_checkpoints_after_days must be a whole number from 1."
  }
}

# --- identity and money -----------------------------------------------------------------------

variable "launcher_members" {
  description = "Who hybrid runs as, such as serviceAccount:head@my-project.iam.gserviceaccount.com or a principal of workload identity. It may launch, extend and end instances, and nothing more."
  type        = list(string)
  nullable    = false

  validation {
    condition     = length(var.launcher_members) > 0
    error_message = "launcher_members must name who hybrid runs as, such as serviceAccount:head@my-project.iam.gserviceaccount.com."
  }
  validation {
    condition     = alltrue([for member in var.launcher_members : can(regex("^(serviceAccount|user|group):[^@ ]+@[^@ ]+$|^principal(Set)?://iam\\.googleapis\\.com/[^ ]+$", member))])
    error_message = "launcher_members must be serviceAccount:, user: or group: and a mail address, or a principal:// of workload identity; never allUsers."
  }
}

variable "nodes_delete_themselves" {
  description = "Whether a node whose lease is over may delete itself, disk and all. Its account can then delete instances of hybrid in this project, and so can every program on a node."
  type        = bool
  default     = true
  nullable    = false
}

variable "enable_apis" {
  description = "Whether to switch on the APIs that are needed. They stay on after a destroy."
  type        = bool
  default     = true
  nullable    = false
}

variable "billing_account" {
  description = "Billing account of the project, for the budget's alarm."
  type        = string
  default     = null

  validation {
    condition     = var.billing_account == null || can(regex("^[0-9A-F]{6}-[0-9A-F]{6}-[0-9A-F]{6}$", var.billing_account))
    error_message = "billing_account must be the id of a billing account, such as 012345-6789AB-CDEF01."
  }
}

variable "monthly_budget_usd" {
  description = "Mail the billing account's administrators at 50, 80 and (forecast) 100 % of this much in a month. It warns; the cap that holds is `budget:` in hybrid.yaml. Null makes no alarm."
  type        = number
  default     = null

  validation {
    condition     = try(var.monthly_budget_usd >= 1 && floor(var.monthly_budget_usd) == var.monthly_budget_usd, var.monthly_budget_usd == null)
    error_message = "monthly_budget_usd must be a whole number from 1."
  }
  validation {
    condition     = var.monthly_budget_usd == null || var.billing_account != null
    error_message = "monthly_budget_usd needs billing_account, since Google keeps budgets there."
  }
}

variable "budget_channels" {
  description = "Channels of Cloud Monitoring that hear the budget's alarm too."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = length(var.budget_channels) <= 5 && alltrue([for channel in var.budget_channels : can(regex("^projects/[^/]+/notificationChannels/[0-9]+$", channel))])
    error_message = "budget_channels must be up to 5 channels, such as projects/my-project/notificationChannels/1234567890."
  }
}
