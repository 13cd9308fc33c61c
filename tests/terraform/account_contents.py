"""What is in the emulated AWS account, asked of its API and not of Terraform."""

from __future__ import annotations

from typing import Any

import boto3
from moto.core.models import DEFAULT_ACCOUNT_ID

from tests.emulators.aws import ACCESS_KEY, SECRET_KEY, AwsEmulator
from tests.terraform.account import REGION


class Account:
    """One account, as its owner sees it."""

    def __init__(self, emulator: AwsEmulator) -> None:
        self._url = emulator.url

    def client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self._url,
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )

    def contents(self) -> set[str]:
        """Return the ids of all there is, of the kinds that the module makes."""
        ec2, iam, logs = self.client("ec2"), self.client("iam"), self.client("logs")
        found: list[str] = []
        for call, key, name in (
            ("vpcs", "Vpcs", "VpcId"),
            ("subnets", "Subnets", "SubnetId"),
            ("internet_gateways", "InternetGateways", "InternetGatewayId"),
            ("route_tables", "RouteTables", "RouteTableId"),
            ("security_groups", "SecurityGroups", "GroupId"),
            ("addresses", "Addresses", "AllocationId"),
            ("launch_templates", "LaunchTemplates", "LaunchTemplateId"),
            ("vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
            ("customer_gateways", "CustomerGateways", "CustomerGatewayId"),
            ("vpn_gateways", "VpnGateways", "VpnGatewayId"),
            ("vpn_connections", "VpnConnections", "VpnConnectionId"),
            ("flow_logs", "FlowLogs", "FlowLogId"),
            ("nat_gateways", "NatGateways", "NatGatewayId"),
        ):
            items = getattr(ec2, f"describe_{call}")()[key]
            found += [i[name] for i in items if i.get("State") not in ("deleted", "deleting")]
        found += [bucket["Name"] for bucket in self.client("s3").list_buckets()["Buckets"]]
        found += [role["RoleName"] for role in iam.list_roles()["Roles"]]
        found += [p["PolicyName"] for p in iam.list_policies(Scope="Local")["Policies"]]
        profiles = iam.list_instance_profiles()["InstanceProfiles"]
        found += [profile["InstanceProfileName"] for profile in profiles]
        found += [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
        budgets = self.client("budgets").describe_budgets(AccountId=DEFAULT_ACCOUNT_ID)
        return {*found, *(item["BudgetName"] for item in budgets["Budgets"])}
