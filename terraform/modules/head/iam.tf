# The head's role: the launcher's policy, its own parameters, and Session Manager where it is wanted.

locals {
  arn        = "arn:${data.aws_partition.this.partition}"
  parameters = "${local.arn}:ssm:${data.aws_region.this.region}:${data.aws_caller_identity.this.account_id}:parameter"
  readable = concat(
    ["${local.parameters}/hybrid/${var.name}/head/*"],
    var.ledger_parameter == null ? [] : ["${local.parameters}${var.ledger_parameter}"],
  )
}

resource "aws_iam_role" "this" {
  name        = "${var.name}-head"
  description = "Head of the cluster ${var.name}"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy" "parameters" {
  name = "parameters"
  role = aws_iam_role.this.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "OwnConfiguration"
      Effect   = "Allow"
      Action   = "ssm:GetParameter"
      Resource = local.readable
    }]
  })
}

resource "aws_iam_role_policy_attachment" "launcher" {
  role       = aws_iam_role.this.name
  policy_arn = var.launcher_policy_arn
}

resource "aws_iam_role_policy_attachment" "session_manager" {
  count      = var.session_manager ? 1 : 0
  role       = aws_iam_role.this.name
  policy_arn = "${local.arn}:iam::aws:policy/AmazonSSMManagedInstanceCore"
}

resource "aws_iam_instance_profile" "this" {
  name = "${var.name}-head"
  role = aws_iam_role.this.name
  tags = local.tags
}
