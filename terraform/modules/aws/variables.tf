variable "name" {
  description = "Name of the cluster, as `name:` in hybrid.yaml. It is in the name of every object here, and the launcher may touch only what carries it."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,28}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 30 lower-case letters, digits or hyphens, beginning with a letter and not ending with a hyphen."
  }
}

variable "other_names" {
  description = "Names of the other networks of this module in the same account, when one configuration has several: each needs a name of its own."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = !contains(var.other_names, var.name)
    error_message = "name is that of another network in this configuration too; give each module a name of its own, since the identities of an account share one list."
  }
}

variable "tags" {
  description = "Tags of every object, and of every instance that hybrid rents."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition = alltrue([
      for key, value in var.tags :
      can(regex("^[A-Za-z0-9+=.,_:@-]{1,128}$", key)) && !startswith(key, "aws:") && !startswith(key, "hybrid-") && length(value) <= 256
    ])
    error_message = "tags must have keys of 1 to 128 letters, digits or +-=.,_:@ that begin with neither aws: nor hybrid-, and values of up to 256 characters."
  }
  validation {
    condition     = length(var.tags) <= 30
    error_message = "tags must be 30 at most: AWS takes 50, and hybrid adds its own."
  }
}

# --- what is rented ---------------------------------------------------------------------------

variable "pools" {
  description = "What hybrid may rent, in order of preference: an instance type, in one zone or (without zone) in any. The launcher's policy allows these types and no other."
  type = list(object({
    instance_type           = string
    zone                    = optional(string)
    use_spot                = optional(bool, false)
    max_nodes               = optional(number)
    usd_per_hour            = optional(number)
    spot_limit_usd_per_hour = optional(number)
  }))
  nullable = false

  validation {
    condition     = length(var.pools) > 0
    error_message = "pools must name at least one instance type, such as [{ instance_type = \"g6.xlarge\" }]."
  }
  validation {
    condition     = alltrue([for pool in var.pools : can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", pool.instance_type))])
    error_message = "pools must have instance types of AWS, such as g6.xlarge."
  }
  validation {
    condition     = alltrue([for pool in var.pools : pool.zone == null || contains(keys(local.subnet_zones), coalesce(pool.zone, "-"))])
    error_message = "pools must be in zones that have a subnet here: those of availability_zones, or of subnet_ids."
  }
  validation {
    condition     = alltrue([for pool in var.pools : try(pool.max_nodes >= 0 && floor(pool.max_nodes) == pool.max_nodes, true)])
    error_message = "pools must have a max_nodes that is a whole number from 0."
  }
  validation {
    condition     = alltrue([for pool in var.pools : try(pool.usd_per_hour > 0, true) && try(pool.spot_limit_usd_per_hour > 0, true)])
    error_message = "pools must have prices above 0."
  }
  validation {
    condition     = alltrue([for pool in var.pools : pool.use_spot || pool.spot_limit_usd_per_hour == null])
    error_message = "pools may have a spot_limit_usd_per_hour only where use_spot is true."
  }
  validation {
    condition     = length(distinct([for pool in var.pools : join("/", [pool.instance_type, coalesce(pool.zone, "any"), pool.use_spot])])) == length(var.pools)
    error_message = "pools must differ in instance type, zone or market: two are the same."
  }
}

variable "image" {
  description = "Image of the nodes, with the GPU driver, Ray and hybrid: an AMI, or ssm:/NAME of a parameter that holds one. Null leaves it to hybrid.yaml."
  type        = string
  default     = null

  validation {
    condition     = var.image == null || can(regex("^(ami-[0-9a-f]{8,17}|ssm:/[A-Za-z0-9_./-]+)$", var.image))
    error_message = "image must be an AMI such as ami-0123456789abcdef0, or ssm:/NAME/OF/PARAMETER."
  }
}

variable "disk_gib" {
  description = "Size of a node's root volume in GiB. The launcher may make none that is larger."
  type        = number
  default     = 100
  nullable    = false

  validation {
    condition     = var.disk_gib >= 8 && var.disk_gib <= 16384 && floor(var.disk_gib) == var.disk_gib
    error_message = "disk_gib must be a whole number from 8 to 16384."
  }
}

variable "key_name" {
  description = "SSH key pair of the nodes. Null gives none: hybrid needs none."
  type        = string
  default     = null

  validation {
    condition     = var.key_name == null || can(regex("^[[:print:]]{1,255}$", var.key_name))
    error_message = "key_name must be 1 to 255 printable characters."
  }
}

variable "kms_key_arn" {
  description = "KMS key of the nodes' volumes and of the bucket. Null uses AWS's own keys of the account."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-z0-9-]+$", var.kms_key_arn))
    error_message = "kms_key_arn must be the ARN of a key, such as arn:aws:kms:us-east-1:123456789012:key/ID."
  }
}

# --- network ----------------------------------------------------------------------------------

variable "create_vpc" {
  description = "Whether to make a network. With false, vpc_id and subnet_ids say which one to use."
  type        = bool
  default     = true
  nullable    = false
}

variable "availability_zones" {
  description = "Zones of the region to make subnets in; more zones have more stock. Only with create_vpc."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = !var.create_vpc || length(var.availability_zones) > 0
    error_message = "availability_zones must name at least one zone, such as [\"us-east-1a\"]."
  }
  validation {
    condition     = var.create_vpc || length(var.availability_zones) == 0
    error_message = "availability_zones is for a network that is made here; with create_vpc = false the zones are those of subnet_ids."
  }
  validation {
    condition     = alltrue([for zone in var.availability_zones : can(regex("^${data.aws_region.this.region}(-[a-z0-9-]+)?[a-z]$", zone))])
    error_message = "availability_zones must all be zones of ${data.aws_region.this.region}, the region of this module's AWS provider; found ${join(", ", var.availability_zones)}."
  }
  validation {
    condition     = length(distinct(var.availability_zones)) == length(var.availability_zones) && length(var.availability_zones) <= 15
    error_message = "availability_zones must be 15 zones at most, each named once."
  }
}

variable "cidr_block" {
  description = "Addresses of the network that is made: /16 to /20, apart from those of every site it is joined with."
  type        = string
  default     = "10.64.0.0/16"
  nullable    = false

  validation {
    condition     = can(cidrnetmask(var.cidr_block)) && try(cidrhost(var.cidr_block, 0) == split("/", var.cidr_block)[0], false)
    error_message = "cidr_block must be a range of IPv4 addresses that begins at its first address, such as 10.64.0.0/16."
  }
  validation {
    condition     = try(tonumber(split("/", var.cidr_block)[1]) >= 16 && tonumber(split("/", var.cidr_block)[1]) <= 20, true)
    error_message = "cidr_block must be from /16 to /20, since it is divided into one public and one private subnet for each zone."
  }
}

variable "vpc_id" {
  description = "Network to use, when create_vpc is false."
  type        = string
  default     = null

  validation {
    condition     = var.create_vpc || can(regex("^vpc-[0-9a-f]{8,17}$", var.vpc_id))
    error_message = "vpc_id must be the id of a VPC, such as vpc-0123456789abcdef0, when create_vpc is false."
  }
  validation {
    condition     = !var.create_vpc || var.vpc_id == null
    error_message = "vpc_id is for a network that exists; set create_vpc = false, or leave vpc_id out."
  }
}

variable "subnet_ids" {
  description = "Private subnet of each zone, when create_vpc is false: { us-east-1a = \"subnet-...\" }."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = var.create_vpc || length(var.subnet_ids) > 0
    error_message = "subnet_ids must name the private subnet of at least one zone when create_vpc is false."
  }
  validation {
    condition     = !var.create_vpc || length(var.subnet_ids) == 0
    error_message = "subnet_ids is for a network that exists; set create_vpc = false, or leave subnet_ids out."
  }
  validation {
    condition     = alltrue([for id in values(var.subnet_ids) : can(regex("^subnet-[0-9a-f]{8,17}$", id))])
    error_message = "subnet_ids must be ids of subnets, such as subnet-0123456789abcdef0."
  }
}

variable "nat_gateway" {
  description = "Whether private subnets reach the internet through a NAT gateway, which costs by the hour. Without one the image must hold all that is needed."
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
    condition = !var.create_vpc || alltrue([
      for cidr in var.on_prem_cidrs : try(
        cidrhost("${split("/", cidr)[0]}/${min(split("/", cidr)[1], split("/", var.cidr_block)[1])}", 0)
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

variable "flow_log_days" {
  description = "How long to keep a log of the network's connections, in days. Null makes none."
  type        = number
  default     = null

  validation {
    condition     = var.flow_log_days == null || contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], coalesce(var.flow_log_days, 365))
    error_message = "flow_log_days must be one that CloudWatch takes: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731 or whole years up to 3653."
  }
  validation {
    condition     = var.flow_log_days == null || var.create_vpc
    error_message = "flow_log_days is for a network that is made here; the log of one that exists is its owner's."
  }
}

variable "vpn" {
  description = "A site-to-site VPN to the own machines: the public address of the device there, and its ASN. Null makes none. The tunnels' keys are in the state."
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
    condition     = var.vpn == null || var.create_vpc
    error_message = "vpn is for a network that is made here; join one that exists as its owner does."
  }
  validation {
    condition     = var.vpn == null || length(var.on_prem_cidrs) > 0
    error_message = "vpn needs on_prem_cidrs: the addresses to route through it."
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
  description = "Name of the bucket. Null, with create_bucket, takes a free one that begins with the cluster's name."
  type        = string
  default     = null

  validation {
    condition     = var.bucket == null || can(regex("^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "bucket must be 3 to 63 lower-case letters, digits, dots or hyphens."
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
    condition     = var.expire_checkpoints_after_days == null || try(var.expire_checkpoints_after_days >= 1 && floor(var.expire_checkpoints_after_days) == var.expire_checkpoints_after_days, false)
    error_message = "expire_checkpoints_after_days must be a whole number from 1."
  }
}

# --- identity and money -----------------------------------------------------------------------

variable "launcher_role_names" {
  description = "Roles that hybrid runs as, to attach the launcher's policy to: that of a head in this account. An on-prem head's identity gets launcher_policy_arn by hand."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for name in var.launcher_role_names : can(regex("^[A-Za-z0-9+=,.@_-]{1,64}$", name))])
    error_message = "launcher_role_names must be names of roles, not their ARNs."
  }
}

variable "create_spot_role" {
  description = "Whether to make the account's service-linked role of spot instances. An account has one: true only where nobody has rented a spot instance yet."
  type        = bool
  default     = false
  nullable    = false
}

variable "monthly_budget_usd" {
  description = "Mail budget_emails at 50, 80 and (forecast) 100 % of this much in a month. It warns; the cap that holds is `budget:` in hybrid.yaml. Null makes no alarm."
  type        = number
  default     = null

  validation {
    condition     = try(var.monthly_budget_usd > 0, var.monthly_budget_usd == null)
    error_message = "monthly_budget_usd must be above 0."
  }
}

variable "budget_emails" {
  description = "Who hears the budget's alarm."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = var.monthly_budget_usd == null || length(var.budget_emails) > 0
    error_message = "budget_emails must name somebody when monthly_budget_usd is set."
  }
  validation {
    condition     = alltrue([for email in var.budget_emails : can(regex("^[^@ ]+@[^@ ]+$", email))])
    error_message = "budget_emails must be mail addresses."
  }
}
