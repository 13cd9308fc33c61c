# Two identities. The nodes: the one bucket and nothing else. The launcher, which is what hybrid
# runs as: exactly the calls of hybrid's AWS adapter, on what carries this cluster's name.

data "aws_caller_identity" "this" {}
data "aws_partition" "this" {}

# A role of this name that is there before we are belongs to another network of the same name.
data "aws_iam_roles" "same_name" {
  name_regex = "^${var.name}-node$"
}

data "aws_iam_role" "same_name" {
  for_each = data.aws_iam_roles.same_name.names
  name     = each.value
}

# Known in the first plan already, other than an id, and kept from then on.
resource "terraform_data" "owner" {
  input = plantimestamp()

  lifecycle {
    ignore_changes = [input]
  }
}

locals {
  arn     = "arn:${data.aws_partition.this.partition}"
  account = data.aws_caller_identity.this.account_id
  ec2     = "${local.arn}:ec2:${local.region}:${local.account}"
  is_ssm  = startswith(coalesce(var.image, "none"), "ssm:")
  ssm_arn = local.is_ssm ? format(
    "%s:ssm:%s:%s:parameter%s",
    local.arn,
    local.region,
    # AWS's own parameters are in no account.
    startswith(var.image, "ssm:/aws/service/") ? "" : local.account,
    trimprefix(var.image, "ssm:"),
  ) : null

  kms_statements = var.kms_key_arn == null ? [] : [{
    Sid      = "VolumesWithThisKey"
    Effect   = "Allow"
    Action   = ["kms:CreateGrant", "kms:GenerateDataKeyWithoutPlaintext", "kms:Decrypt", "kms:DescribeKey"]
    Resource = var.kms_key_arn
    Condition = {
      StringEquals = { "kms:ViaService" = "ec2.${local.region}.amazonaws.com" }
    }
  }]
  ssm_statements = !local.is_ssm ? [] : [{
    Sid      = "TheImageByName"
    Effect   = "Allow"
    Action   = "ssm:GetParameter"
    Resource = local.ssm_arn
  }]

  ours = { "aws:ResourceTag/hybrid-cluster-name" = var.name }
  # Beside the name, which other things carry too (a head, a machine started by hand): what only
  # hybrid writes, on what it makes itself.
  rented   = { StringEquals = local.ours, Null = { "aws:ResourceTag/hybrid-instance" = "false" } }
  template = { StringEquals = local.ours, Null = { "aws:ResourceTag/hybrid-template" = "false" } }
  # What hybrid writes on each machine: whose it is, which one, and how long it may live.
  tag_keys = concat(
    ["Name", "hybrid-cluster", "hybrid-cluster-name", "hybrid-instance", "hybrid-epoch", "hybrid-offer", "hybrid-expires-at", "hybrid-token"],
    keys(var.tags),
  )
  with_our_tags = {
    StringEquals                = { "aws:RequestTag/hybrid-cluster-name" = var.name }
    Null                        = { "aws:RequestTag/hybrid-cluster" = "false", "aws:RequestTag/hybrid-instance" = "false" }
    "ForAllValues:StringEquals" = { "aws:TagKeys" = local.tag_keys }
  }

  launcher_statements = concat([
    {
      Sid    = "Look"
      Effect = "Allow"
      Action = [
        "ec2:DescribeImages",
        "ec2:DescribeInstances",
        "ec2:DescribeInstanceTypes",
        "ec2:DescribeLaunchTemplates",
        "ec2:DescribeSpotPriceHistory",
      ]
      Resource  = "*"
      Condition = { StringEquals = { "aws:RequestedRegion" = local.region } }
    },
    # The price lists of all regions are in a few, none of which need be ours.
    { Sid = "ReadPrices", Effect = "Allow", Action = "pricing:GetProducts", Resource = "*" },
    {
      Sid      = "RentTheseTypesWithOurTags"
      Effect   = "Allow"
      Action   = "ec2:RunInstances"
      Resource = "${local.ec2}:instance/*"
      Condition = merge(local.with_our_tags, {
        StringEquals = merge(local.with_our_tags.StringEquals, {
          "ec2:InstanceType"       = distinct(var.pools[*].instance_type)
          "ec2:MetadataHttpTokens" = "required"
        })
      })
    },
    {
      Sid      = "WithEncryptedVolumes"
      Effect   = "Allow"
      Action   = "ec2:RunInstances"
      Resource = "${local.ec2}:volume/*"
      Condition = merge(local.with_our_tags, {
        Bool                  = { "ec2:Encrypted" = "true" }
        NumericLessThanEquals = { "ec2:VolumeSize" = tostring(var.disk_gib) }
      })
    },
    {
      Sid    = "InThisNetwork"
      Effect = "Allow"
      Action = ["ec2:RunInstances", "ec2:CreateFleet"]
      Resource = concat(
        local.subnet_arns,
        [
          aws_security_group.node.arn,
          "${local.ec2}:network-interface/*",
          "${local.ec2}:spot-instances-request/*",
          "${local.arn}:ec2:${local.region}::image/*",
          "${local.arn}:ec2:${local.region}::snapshot/*",
        ],
        var.key_name == null ? [] : ["${local.ec2}:key-pair/${var.key_name}"],
      )
    },
    {
      Sid       = "FleetsWithOurTags"
      Effect    = "Allow"
      Action    = "ec2:CreateFleet"
      Resource  = ["${local.ec2}:fleet/*", "${local.ec2}:instance/*", "${local.ec2}:volume/*"]
      Condition = local.with_our_tags
    },
    {
      Sid       = "FromOurTemplates"
      Effect    = "Allow"
      Action    = ["ec2:RunInstances", "ec2:CreateFleet"]
      Resource  = "${local.ec2}:launch-template/*"
      Condition = local.template
    },
    {
      Sid      = "TemplatesWithOurTags"
      Effect   = "Allow"
      Action   = "ec2:CreateLaunchTemplate"
      Resource = "${local.ec2}:launch-template/*"
      Condition = {
        StringEquals = { "aws:RequestTag/hybrid-cluster-name" = var.name }
        Null         = { "aws:RequestTag/hybrid-cluster" = "false", "aws:RequestTag/hybrid-template" = "false" }
      }
    },
    {
      Sid       = "RemoveTemplatesOfHybrid"
      Effect    = "Allow"
      Action    = "ec2:DeleteLaunchTemplate"
      Resource  = "${local.ec2}:launch-template/*"
      Condition = local.template
    },
    {
      Sid    = "TagWhatIsBeingMade"
      Effect = "Allow"
      Action = "ec2:CreateTags"
      Resource = [
        for kind in ["fleet", "instance", "launch-template", "network-interface", "spot-instances-request", "volume"] :
        "${local.ec2}:${kind}/*"
      ]
      Condition = {
        StringEquals = { "ec2:CreateAction" = ["RunInstances", "CreateFleet", "CreateLaunchTemplate"] }
      }
    },
    {
      Sid      = "RenewLeases"
      Effect   = "Allow"
      Action   = "ec2:CreateTags"
      Resource = "${local.ec2}:instance/*"
      Condition = merge(local.rented, {
        "ForAllValues:StringEquals" = { "aws:TagKeys" = ["hybrid-expires-at"] }
        # The one above alone holds for a call without tags, too.
        Null = merge(local.rented.Null, { "aws:TagKeys" = "false" })
      })
    },
    {
      Sid       = "EndOurs"
      Effect    = "Allow"
      Action    = "ec2:TerminateInstances"
      Resource  = "${local.ec2}:instance/*"
      Condition = local.rented
    },
    {
      Sid       = "GiveNodesTheirRole"
      Effect    = "Allow"
      Action    = "iam:PassRole"
      Resource  = aws_iam_role.node.arn
      Condition = { StringEquals = { "iam:PassedToService" = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"] } }
    },
  ], local.ssm_statements, local.kms_statements)

  data_statements = concat([
    { Sid = "List", Effect = "Allow", Action = ["s3:ListBucket", "s3:GetBucketLocation"], Resource = local.bucket_arn },
    {
      Sid      = "Objects"
      Effect   = "Allow"
      Action   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
      Resource = "${local.bucket_arn}/*"
    },
    ], var.kms_key_arn == null ? [] : [{
      Sid      = "TheirKey"
      Effect   = "Allow"
      Action   = ["kms:Decrypt", "kms:GenerateDataKey"]
      Resource = var.kms_key_arn
      Condition = {
        StringEquals = { "kms:ViaService" = "s3.${local.region}.amazonaws.com" }
      }
  }])
}

resource "aws_iam_role" "node" {
  name        = "${var.name}-node"
  description = "Nodes of the cluster ${var.name}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
  tags = merge(local.tags, { "hybrid-owner" = terraform_data.owner.input })

  lifecycle {
    precondition {
      condition = alltrue([
        for role in data.aws_iam_role.same_name :
        lookup(coalesce(role.tags, {}), "hybrid-owner", "nobody") == terraform_data.owner.input
      ])
      error_message = "The account has a role ${var.name}-node that is not this module's: another network has the same name; choose another name."
    }
  }
}

resource "aws_iam_role_policy" "node" {
  name   = "bucket"
  role   = aws_iam_role.node.name
  policy = jsonencode({ Version = "2012-10-17", Statement = local.data_statements })
}

resource "aws_iam_instance_profile" "node" {
  name = "${var.name}-node"
  role = aws_iam_role.node.name
  tags = local.tags
}

resource "aws_iam_policy" "launcher" {
  name        = "${var.name}-launcher"
  description = "What hybrid may do for the cluster ${var.name}: rent, tag and end its own instances"
  policy      = jsonencode({ Version = "2012-10-17", Statement = local.launcher_statements })
  tags        = local.tags

  lifecycle {
    precondition {
      # AWS's limit, blanks not counted; jsonencode writes none outside of names.
      condition     = length(jsonencode({ Version = "2012-10-17", Statement = local.launcher_statements })) <= 6144
      error_message = "The launcher's policy is longer than the 6144 characters that AWS takes: name fewer pools, zones or tags."
    }
  }
}

resource "aws_iam_policy" "data" {
  name        = "${var.name}-data"
  description = "What jobs of the cluster ${var.name} on own machines need: its bucket"
  policy      = jsonencode({ Version = "2012-10-17", Statement = local.data_statements })
  tags        = local.tags
}

resource "aws_iam_role_policy_attachment" "launcher" {
  for_each   = toset(var.launcher_role_names)
  role       = each.value
  policy_arn = aws_iam_policy.launcher.arn
}

resource "aws_iam_service_linked_role" "spot" {
  count            = var.create_spot_role ? 1 : 0
  aws_service_name = "spot.amazonaws.com"
}
