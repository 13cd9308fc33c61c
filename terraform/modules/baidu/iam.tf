# The launcher: a user of its own for hybrid. Baidu's provider has no roles, so nodes get no
# identity and no keys; jobs that read the bucket bring their own.

resource "baiducloud_iam_user" "launcher" {
  name          = "${var.name}-launcher"
  description   = "hybrid, which rents nodes of the cluster ${var.name}"
  force_destroy = false
}

# The form that Baidu documents: a whole service in one region. Finer words are not documented
# well enough to promise anything; see docs/fidelity/baidu.md.
resource "baiducloud_iam_policy" "launcher" {
  name        = "${var.name}-launcher"
  description = "BCC in ${var.region}, and nothing else"
  document = jsonencode({
    accessControlList = [{
      region     = var.region
      service    = "bcc"
      resource   = ["*"]
      permission = var.bcc_permissions
      effect     = "Allow"
    }]
  })
}

resource "baiducloud_iam_user_policy_attachment" "launcher" {
  user        = baiducloud_iam_user.launcher.name
  policy      = baiducloud_iam_policy.launcher.name
  policy_type = "Custom"
}

# For own machines and jobs that read or write checkpoints: this bucket only. Attached to nobody here.
resource "baiducloud_iam_policy" "data" {
  name        = "${var.name}-data"
  description = "Objects of the bucket ${local.bucket}, and nothing else"
  document = jsonencode({
    accessControlList = [{
      region     = var.region
      service    = "bce:bos"
      resource   = [local.bucket, "${local.bucket}/*"]
      permission = ["READ", "WRITE", "LIST"]
      effect     = "Allow"
    }]
  })
}

resource "baiducloud_iam_access_key" "launcher" {
  count    = var.launcher_pgp_key == null ? 0 : 1
  username = baiducloud_iam_user.launcher.name
  enabled  = true
  pgp_key  = var.launcher_pgp_key
}
