# An alarm, not a cap. It counts what carries the cluster's tag, once `hybrid-cluster-name` is
# activated as a cost allocation tag in the billing console; until then it counts nothing.

resource "aws_budgets_budget" "this" {
  count        = var.monthly_budget_usd == null ? 0 : 1
  name         = "${var.name}-burst"
  budget_type  = "COST"
  limit_amount = tostring(var.monthly_budget_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  cost_filter {
    name   = "TagKeyValue"
    values = [format("user:hybrid-cluster-name$%s", var.name)]
  }

  dynamic "notification" {
    for_each = { 50 = "ACTUAL", 80 = "ACTUAL", 100 = "FORECASTED" }
    content {
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.key
      threshold_type             = "PERCENTAGE"
      notification_type          = notification.value
      subscriber_email_addresses = var.budget_emails
    }
  }

  tags = local.tags
}
