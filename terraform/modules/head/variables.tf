variable "name" {
  description = "Name of the cluster, the same as in the network's module."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,28}[a-z0-9]$", var.name))
    error_message = "name must be 3 to 30 lower-case letters, digits or hyphens, beginning with a letter and not ending with a hyphen."
  }
}

variable "tags" {
  description = "Tags of every object."
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = length(var.tags) <= 40 && alltrue([for key in keys(var.tags) : !startswith(key, "aws:") && !startswith(key, "hybrid-")])
    error_message = "tags must be 40 at most, with keys that begin with neither aws: nor hybrid-."
  }
}

# --- the cluster ------------------------------------------------------------------------------

variable "config" {
  description = "The text of hybrid.yaml, such as file(\"hybrid.yaml\"). It holds no secrets. A change is there at the next `systemctl restart hybrid`."
  type        = string
  nullable    = false

  validation {
    condition     = can(yamldecode(var.config)) && try(yamldecode(var.config).name == var.name, false)
    error_message = "config must be the text of a hybrid.yaml whose name is ${var.name}."
  }
  validation {
    condition     = length(var.config) <= 8192
    error_message = "config must be 8192 characters at most: that is what a parameter of AWS holds."
  }
}

variable "hybrid_providers" {
  description = "Outputs `hybrid_provider` of the clouds' modules, by any name: { aws = module.aws.hybrid_provider }. The head lays them over config."
  type        = any
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for item in values(var.hybrid_providers) : can(item.provider)])
    error_message = "hybrid_providers must be outputs hybrid_provider of the modules, such as { aws = module.aws.hybrid_provider }."
  }
}

variable "ledger_parameter" {
  description = "Name of a SecureString in Parameter Store that holds the URL of a PostgreSQL ledger, postgresql+psycopg://USER:PASSWORD@HOST/DATABASE. Null keeps the ledger in SQLite on the head's volume."
  type        = string
  default     = null

  validation {
    condition     = var.ledger_parameter == null || can(regex("^/[A-Za-z0-9_./-]{1,900}$", var.ledger_parameter))
    error_message = "ledger_parameter must be the name of a parameter that begins with /, such as /hybrid/burst/ledger; the URL itself never belongs here."
  }
}

variable "package" {
  description = "What pip installs, with an exact version: with the extras of your clouds, and postgres for a ledger there."
  type        = string
  default     = "hybrid-burst[aws,postgres]==0.1.0"
  nullable    = false

  validation {
    condition     = can(regex("^hybrid-burst(\\[[a-z,]+\\])?(==[0-9][0-9A-Za-z.]*| @ https://[^ '\"]+)$", var.package))
    error_message = "package must be hybrid-burst with an exact version, such as hybrid-burst[aws]==0.1.0, or hybrid-burst @ https://... of a wheel."
  }
}

variable "pip_index_url" {
  description = "Package index of your own. Null is pip's."
  type        = string
  default     = null

  validation {
    condition     = var.pip_index_url == null || can(regex("^https://[^@ '\"]+$", var.pip_index_url))
    error_message = "pip_index_url must be an https:// address without a password."
  }
}

# --- the machine ------------------------------------------------------------------------------

variable "image" {
  description = "AMI of the head: systemd, cloud-init, the SSM agent, and python of the same minor version as the nodes' image. No GPU is needed."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^ami-[0-9a-f]{8,17}$", var.image))
    error_message = "image must be an AMI, such as ami-0123456789abcdef0."
  }
}

variable "python" {
  description = "Interpreter in the image: its minor version must be that of the nodes' image."
  type        = string
  default     = "/usr/bin/python3.11"
  nullable    = false

  validation {
    condition     = can(regex("^/[A-Za-z0-9._/+-]+$", var.python))
    error_message = "python must be the path of an interpreter, such as /usr/bin/python3.11."
  }
}

variable "instance_type" {
  description = "Type of the head's machine. It runs Ray's head and the controller, no tasks."
  type        = string
  default     = "m7i.xlarge"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9-]+\\.[a-z0-9-]+$", var.instance_type))
    error_message = "instance_type must be an instance type of AWS, such as m7i.xlarge."
  }
}

variable "volume_gib" {
  description = "Size of the volume with the ledger, the logs and the output of jobs, in GiB. It outlives the machine."
  type        = number
  default     = 50
  nullable    = false

  validation {
    condition     = var.volume_gib >= 10 && var.volume_gib <= 16384 && floor(var.volume_gib) == var.volume_gib
    error_message = "volume_gib must be a whole number from 10 to 16384."
  }
}

variable "kms_key_arn" {
  description = "KMS key of both volumes. Null uses AWS's own key of the account."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-z0-9-]+$", var.kms_key_arn))
    error_message = "kms_key_arn must be the ARN of a key, such as arn:aws:kms:us-east-1:123456789012:key/ID."
  }
}

variable "protect" {
  description = "Whether AWS refuses to terminate the head. Set it to false, apply, and then destroy."
  type        = bool
  default     = true
  nullable    = false
}

# --- network and identity ---------------------------------------------------------------------

variable "vpc_id" {
  description = "The network: output vpc_id of the AWS module."
  type        = string
  nullable    = false
}

variable "subnet_id" {
  description = "A private subnet of it, which decides the zone: one of the AWS module's private_subnet_ids."
  type        = string
  nullable    = false
}

variable "availability_zone" {
  description = "Zone of subnet_id, where the volume is made too."
  type        = string
  nullable    = false

  validation {
    condition     = can(regex("^[a-z]{2}(-[a-z0-9]+)+-[0-9][a-z]$", var.availability_zone))
    error_message = "availability_zone must be a zone of AWS, such as us-east-1a."
  }
}

variable "node_security_group_id" {
  description = "The nodes' security group: output security_group_id of the AWS module. It gets two rules, for the head."
  type        = string
  nullable    = false
}

variable "launcher_policy_arn" {
  description = "What hybrid may do: output launcher_policy_arn of the AWS module."
  type        = string
  nullable    = false
}

variable "on_prem_cidrs" {
  description = "Own machines and people's network: they reach Ray and hybrid's API on the head, and the head reaches them. Nobody else does."
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for cidr in var.on_prem_cidrs : can(cidrnetmask(cidr)) && try(cidrhost(cidr, 0) == split("/", cidr)[0], false)])
    error_message = "on_prem_cidrs must be ranges of IPv4 addresses that begin at their first address, such as 192.168.0.0/24."
  }
  validation {
    condition     = alltrue([for cidr in var.on_prem_cidrs : try(tonumber(split("/", cidr)[1]) >= 8, true)])
    error_message = "on_prem_cidrs must be your own networks, /8 or smaller; 0.0.0.0/0 would open the head to the internet."
  }
}

variable "head_ports" {
  description = "TCP ports of the head that nodes and on_prem_cidrs may reach: Ray's and the controller's."
  type        = object({ from = number, to = number })
  default     = { from = 1024, to = 65535 }
  nullable    = false

  validation {
    condition     = var.head_ports.from >= 1024 && var.head_ports.from <= var.head_ports.to && var.head_ports.to <= 65535
    error_message = "head_ports must be a range from 1024 to 65535, the lower port first."
  }
}

variable "session_manager" {
  description = "Whether people log in through SSM Session Manager, with AWS's login and no open port. The head has no SSH key."
  type        = bool
  default     = true
  nullable    = false
}
