variable "name" {
  description = "Name of the cluster, as `name:` in hybrid.yaml. It is in the name of every object here."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,38}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 40 lower-case letters, digits or hyphens, beginning with a letter and not ending with a hyphen."
  }
}

variable "other_names" {
  description = "Names of the other networks of this module in the same account, when one configuration has several: each needs a name of its own."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = !contains(var.other_names, var.name)
    error_message = "name is that of another network in this configuration too; give each module a name of its own, since the users and policies of an account share one list."
  }
}

variable "region" {
  description = "Region of all objects and pools; the same as that of the provider block."
  type        = string
  nullable    = false

  validation {
    condition     = contains(["bd", "bj", "fsh", "fwh", "gz", "hkg", "sin", "su"], var.region)
    error_message = "region must be one that has BCC: bd, bj, fsh, fwh, gz, hkg, sin or su."
  }
}

variable "tags" {
  description = "Tags of every object here. Instances get hybrid's own tags."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for key, value in var.tags : can(regex("^[A-Za-z0-9_./-]{1,65}$", key)) && !startswith(key, "hybrid-") && length(value) <= 65])
    error_message = "tags must have keys of 1 to 65 letters, digits or _-/. that do not begin with hybrid-, and values of up to 65 characters."
  }
  validation {
    condition     = length(var.tags) <= 8
    error_message = "tags must be 8 at most: Baidu takes 10, and this module adds two."
  }
}

# --- what is rented ---------------------------------------------------------------------------

variable "pools" {
  description = "What hybrid may rent, in order of preference: an instance type (Baidu's `spec`), in one zone or (without zone) where Baidu likes. Prices in dollars or, with exchange, in CNY."
  type = list(object({
    instance_type = string
    zone          = optional(string)
    accelerators  = optional(string)
    cpus          = optional(number)
    memory        = optional(string)
    use_spot      = optional(bool, false)
    max_nodes     = optional(number)
    usd_per_hour  = optional(number)
    cny_per_hour  = optional(number)
  }))
  nullable = false

  validation {
    condition     = length(var.pools) > 0
    error_message = "pools must name at least one instance type, such as [{ instance_type = \"bcc.lgn1.c12m40.1p40\", zone = \"cn-bj-d\" }]."
  }
  validation {
    condition     = alltrue([for pool in var.pools : can(regex("^[a-z]{2,8}(\\.[A-Za-z0-9_-]+){1,5}$", pool.instance_type))])
    error_message = "pools must have instance types of Baidu, such as bcc.lgn1.c12m40.1p40."
  }
  validation {
    condition     = alltrue([for pool in var.pools : pool.zone == null || contains(keys(local.subnet_zones), coalesce(pool.zone, "-"))])
    error_message = "pools must be in zones that have a subnet here: those of zones, or of subnet_ids."
  }
  validation {
    condition     = alltrue([for pool in var.pools : try(pool.max_nodes >= 0 && floor(pool.max_nodes) == pool.max_nodes, pool.max_nodes == null)])
    error_message = "pools must have a max_nodes that is a whole number from 0."
  }
  validation {
    condition     = alltrue([for pool in var.pools : try(pool.usd_per_hour > 0, pool.usd_per_hour == null) && try(pool.cny_per_hour > 0, pool.cny_per_hour == null)])
    error_message = "pools must have prices above 0."
  }
  validation {
    condition     = alltrue([for pool in var.pools : pool.usd_per_hour == null || pool.cny_per_hour == null])
    error_message = "pools must have one price: usd_per_hour or cny_per_hour."
  }
  validation {
    condition     = var.exchange != null || alltrue([for pool in var.pools : pool.cny_per_hour == null && !pool.use_spot])
    error_message = "pools with cny_per_hour or use_spot need exchange: Baidu bills and takes bids in CNY, hybrid counts dollars."
  }
  validation {
    condition     = length(distinct([for pool in var.pools : join("/", [pool.instance_type, coalesce(pool.zone, "any"), pool.use_spot])])) == length(var.pools)
    error_message = "pools must differ in instance type, zone or market: two are the same."
  }
}

variable "exchange" {
  description = "What a US dollar costs, with its day and source. There is no default: a rate without them is a guess."
  type = object({
    cny_per_usd = number
    as_of       = string
    source      = string
  })
  default = null

  validation {
    condition     = try(var.exchange.cny_per_usd > 1 && var.exchange.cny_per_usd < 100, var.exchange == null)
    error_message = "exchange must have a cny_per_usd between 1 and 100."
  }
  validation {
    condition     = try(can(formatdate("YYYY", "${var.exchange.as_of}T00:00:00Z")) && length(var.exchange.source) > 0, var.exchange == null)
    error_message = "exchange must have as_of, a day such as 2026-11-27, and source, where the rate is from."
  }
}

variable "image" {
  description = "Image of the nodes, with the GPU driver, Ray and hybrid. Null leaves it to hybrid.yaml."
  type        = string
  default     = null

  validation {
    condition     = var.image == null || can(regex("^[A-Za-z0-9_-]{1,128}$", var.image))
    error_message = "image must be the id of an image, such as m-AbCd1234."
  }
}

variable "root_disk_gb" {
  description = "Size of a node's system disk in GB."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.root_disk_gb >= 40 && var.root_disk_gb <= 2048 && floor(var.root_disk_gb) == var.root_disk_gb
    error_message = "root_disk_gb must be a whole number from 40 to 2048."
  }
}

variable "resource_group" {
  description = "Resource group of the nodes and the bucket."
  type        = string
  default     = null

  validation {
    condition     = var.resource_group == null || can(regex("^[A-Za-z0-9_-]{1,128}$", var.resource_group))
    error_message = "resource_group must be the id of a resource group, such as RESG-AbCd1234."
  }
}

variable "ssh_public_key" {
  description = "Public key of people who may log in to nodes. Null makes no key pair: hybrid needs none."
  type        = string
  default     = null

  validation {
    condition     = var.ssh_public_key == null || can(regex("^(ssh-(rsa|ed25519)|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]+( .*)?$", var.ssh_public_key))
    error_message = "ssh_public_key must be one line of a public key, such as the content of id_ed25519.pub; a private key never belongs here."
  }
}

# --- network ----------------------------------------------------------------------------------

variable "create_vpc" {
  description = "Whether to make a network. With false, vpc_id and subnet_ids say which one to use."
  type        = bool
  default     = true
  nullable    = false
}

variable "zones" {
  description = "Zones of the region to make subnets in; more zones have more stock. Only with create_vpc."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = !var.create_vpc || length(var.zones) > 0
    error_message = "zones must name at least one zone, such as [\"cn-bj-d\"]."
  }
  validation {
    condition     = var.create_vpc || length(var.zones) == 0
    error_message = "zones is for a network that is made here; with create_vpc = false the zones are those of subnet_ids."
  }
  validation {
    condition     = alltrue([for zone in var.zones : can(regex("^[a-z]+-${var.region}-[a-z]$", zone))])
    error_message = "zones must all be zones of ${var.region}, the region of this module; found ${join(", ", var.zones)}."
  }
  validation {
    condition     = length(distinct(var.zones)) == length(var.zones) && length(var.zones) <= 15
    error_message = "zones must be 15 at most, each named once."
  }
}

variable "cidr_block" {
  description = "Addresses of the network that is made: /16 to /20, apart from those of every site it is joined with."
  type        = string
  default     = "10.80.0.0/16"
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.cidr_block)) && try(cidrhost(var.cidr_block, 0) == split("/", var.cidr_block)[0], false)
    error_message = "cidr_block must be a range of IPv4 addresses that begins at its first address, such as 10.80.0.0/16."
  }
  validation {
    condition     = try(tonumber(split("/", var.cidr_block)[1]) >= 16 && tonumber(split("/", var.cidr_block)[1]) <= 20, true)
    error_message = "cidr_block must be from /16 to /20, since it is divided into one subnet for each zone."
  }
}

variable "vpc_id" {
  description = "Network to use, when create_vpc is false."
  type        = string
  default     = null

  validation {
    condition     = var.create_vpc || can(regex("^vpc-[A-Za-z0-9]+$", var.vpc_id))
    error_message = "vpc_id must be the id of a VPC, such as vpc-abcdefghijkl, when create_vpc is false."
  }
  validation {
    condition     = !var.create_vpc || var.vpc_id == null
    error_message = "vpc_id is for a network that exists; set create_vpc = false, or leave vpc_id out."
  }
}

variable "subnet_ids" {
  description = "Subnet of each zone, when create_vpc is false: { cn-bj-d = \"sbn-...\" }."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = var.create_vpc || length(var.subnet_ids) > 0
    error_message = "subnet_ids must name the subnet of at least one zone when create_vpc is false."
  }
  validation {
    condition     = !var.create_vpc || length(var.subnet_ids) == 0
    error_message = "subnet_ids is for a network that exists; set create_vpc = false, or leave subnet_ids out."
  }
  validation {
    condition     = alltrue([for zone, id in var.subnet_ids : can(regex("^[a-z]+-${var.region}-[a-z]$", zone)) && can(regex("^sbn-[A-Za-z0-9]+$", id))])
    error_message = "subnet_ids must be ids of subnets by zone of ${var.region}, such as { cn-${var.region}-d = \"sbn-abcdefghijkl\" }."
  }
}

variable "nat_gateway" {
  description = "Whether nodes reach the internet through a NAT gateway, which costs by the hour. Without one the image must hold all that is needed."
  type        = bool
  default     = true
  nullable    = false
}

variable "nat_bandwidth_mbps" {
  description = "Most bandwidth of the NAT gateway's public address, which is billed by traffic."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.nat_bandwidth_mbps >= 1 && var.nat_bandwidth_mbps <= 200 && floor(var.nat_bandwidth_mbps) == var.nat_bandwidth_mbps
    error_message = "nat_bandwidth_mbps must be a whole number from 1 to 200."
  }
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
    condition = !var.create_vpc || alltrue([
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
    condition     = alltrue([for port in var.egress_ports : port >= 1 && port <= 65535 && floor(port) == port])
    error_message = "egress_ports must be ports from 1 to 65535."
  }
}

variable "vpn" {
  description = "A site-to-site VPN to the own machines: the public address of the device there. Null makes none."
  type = object({
    address = string
  })
  default = null

  validation {
    condition     = var.vpn == null || can(cidrnetmask("${var.vpn.address}/32"))
    error_message = "vpn must have the public IPv4 address of your device, such as 203.0.113.10."
  }
  validation {
    condition     = var.vpn == null || var.create_vpc
    error_message = "vpn is for a network that is made here; join one that exists as its owner does."
  }
  validation {
    condition     = var.vpn == null || length(var.on_prem_cidrs) > 0
    error_message = "vpn needs on_prem_cidrs: the addresses to route through it."
  }
}

variable "vpn_secret" {
  description = "Shared secret of the VPN, for example from TF_VAR_vpn_secret. Baidu's provider has no write-only argument: with a vpn it is in the state, so encrypt the state."
  type        = string
  default     = null
  sensitive   = true

  validation {
    condition     = var.vpn == null || try(length(var.vpn_secret) >= 20, false)
    error_message = "vpn_secret must have 20 characters or more when there is a vpn; put it into TF_VAR_vpn_secret."
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
  description = "Name of the bucket, unique in all of Baidu. Null, with create_bucket, is NAME-REGION-data."
  type        = string
  default     = null

  validation {
    condition     = var.bucket == null || can(regex("^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "bucket must be 3 to 63 lower-case letters, digits or hyphens."
  }
  validation {
    condition     = var.create_bucket || var.bucket != null
    error_message = "bucket must name one that exists when create_bucket is false."
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

# --- identity ---------------------------------------------------------------------------------

variable "bcc_permissions" {
  description = "Permissions of the launcher for BCC. Baidu documents only the default in full; narrow it by trying, as docs/fidelity/baidu.md says."
  type        = list(string)
  default     = ["*"]
  nullable    = false

  validation {
    condition     = length(var.bcc_permissions) > 0 && alltrue([for word in var.bcc_permissions : can(regex("^(\\*|[A-Za-z_]+)$", word))])
    error_message = "bcc_permissions must be words of Baidu's policies, such as READ, or * for all of BCC."
  }
}

variable "launcher_pgp_key" {
  description = "Make an access key of the launcher, encrypted with this key (base64 or keybase:NAME). Null makes none: make it in the console, so that no secret is in the state."
  type        = string
  default     = null

  validation {
    condition     = var.launcher_pgp_key == null || can(regex("^(keybase:[A-Za-z0-9_]+|[A-Za-z0-9+/=\\s]{100,})$", var.launcher_pgp_key))
    error_message = "launcher_pgp_key must be a public PGP key in base64, or keybase:NAME."
  }
}
