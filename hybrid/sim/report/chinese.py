"""Chinese forms of the sentences of reports and advice, by their English ones."""
# ruff: noqa: RUF001 (Chinese has its own commas and brackets)

from __future__ import annotations

CHINESE: dict[str, str] = {
    # The headline.
    "With {gpus} GPUs at home, the policy “{policy}” rented nothing: home was enough.": (
        "自有 {gpus} 块 GPU，策略“{policy}”没有租用任何云机器：自有资源已经够用。"
    ),
    "With {gpus} GPUs at home, the policy “{policy}” spent {usd} on rented GPUs.": (
        "自有 {gpus} 块 GPU，策略“{policy}”租用 GPU 花费 {usd}。"
    ),
    "With {gpus} GPUs at home, the policy “{policy}” spent {usd} on rented GPUs in {days} days.": (
        "自有 {gpus} 块 GPU，策略“{policy}”在 {days} 天内租用 GPU 花费 {usd}。"
    ),
    "Nothing else was run that it could be compared with.": "没有运行其他策略可供比较。",
    "The best other policy, “{base}”, rented nothing.": "最好的其他策略“{base}”没有租用任何机器。",
    "The best other policy, “{base}”, would have cost about the same.": (
        "最好的其他策略“{base}”花费大致相同。"
    ),
    "The best other policy, “{base}”, would have cost {usd}: {share} of that is saved.": (
        "最好的其他策略“{base}”要花 {usd}：节省了其中的 {share}。"
    ),
    "The best other policy, “{base}”, would have cost {usd}, which is LESS.": (
        "最好的其他策略“{base}”只需 {usd}，反而更少。"
    ),
    " It would not have kept its promises, though, and neither would any other.": (
        "但它没有守住承诺，其他策略也没有。"
    ),
    "Its promises were kept: {start} of the jobs started within their longest wait, and "
    "{work} of the work ended in time.": (
        "承诺得到遵守：{start} 的作业在最长等待时间内开始，{work} 的工作量按时完成。"
    ),
    "Its promises were NOT kept: only {start} of the jobs started within their longest wait, "
    "and {work} of the work ended in time.": (
        "承诺没有得到遵守：只有 {start} 的作业在最长等待时间内开始，{work} 的工作量按时完成。"
    ),
    "No job was interrupted.": "没有作业被中断。",
    "The price in comfort: {share} of the jobs were interrupted at least once, saved and "
    "continued; the most that one job had was {most}.": (
        "代价：{share} 的作业至少被中断一次（保存检查点后继续），单个作业最多 {most} 次。"
    ),
    "for rented GPUs ({policy})": "租用 GPU 的花费（{policy}）",
    "for rented GPUs with the best other policy ({policy})": "最好的其他策略的租用花费（{policy}）",
    "of the jobs started in time": "的作业按时开始",
    "for the GPUs at home in the same time, by assumption": "同期自有 GPU 的成本（按假设）",
    "of the time at home had work": "的自有 GPU 时间在工作",
    # Tables.
    "Trace {trace}: {jobs} jobs. A simulation, not a bill.": (
        "负载 {trace}：{jobs} 个作业。这是模拟，不是账单。"
    ),
    "Money and promises": "花费与承诺",
    "Policy": "策略",
    "Rented": "租用",
    "With the GPUs at home": "含自有 GPU",
    "Saved on {base}": "比 {base} 节省",
    "Captured": "实现的节省",
    "Promises kept": "守住承诺",
    "Jobs started in time": "按时开始的作业",
    "Work ended in time": "按时完成的工作量",
    "Wait, minutes: 50 %": "等待（分钟）：50 %",
    "yes": "是",
    "NO": "否",
    "The {gpus} GPUs at home cost the same under every policy: about {rate} per GPU and hour "
    "whether used or not, {total} in this time. That is an assumption, listed below.": (
        "{gpus} 块自有 GPU 在各策略下成本相同：无论是否使用，每 GPU 每小时约 {rate}，"
        "这段时间共 {total}。这是假设，详见下文。"
    ),
    "What somebody who knows the future would pay": "预知未来者的花费",
    "Bound": "界",
    "Holds for": "适用于",
    "at least": "至少",
    "at most": "至多",
    "policies that never interrupt a job": "从不中断作业的策略",
    "policies that may move jobs, and end none later than its longest wait": (
        "可以迁移作业、且推迟不超过最长等待时间的策略"
    ),
    "the same, and a share of the run time later: also true for ours": (
        "同上，并可再推迟运行时间的一定比例：对我们的策略也成立"
    ),
    "a plan that somebody who knows the future could carry out; jobs are not moved": (
        "预知未来者可以执行的计划，不迁移作业"
    ),
    "A policy that a bound does not hold for may pay less. “Captured” is the share of "
    "what could be saved, from the best other policy (0 %) down to LB-M (100 %); since "
    "ours may also be late by a share of the run time, it can go above 100 %.": (
        "界不适用的策略可能花得更少。“实现的节省”是可节省金额中实现的比例：最好的其他策略为 0 %，"
        "LB-M 为 100 %；我们的策略还可推迟运行时间的一定比例，因此可能超过 100 %。"
    ),
    "How it went": "过程",
    "What it took": "付出的操作",
    "Rented GPU-hours": "租用 GPU 小时",
    "of them idle": "其中空闲",
    "of them locked in": "其中锁定在云上",
    "Nodes asked for": "申请的节点",
    "Rented again within minutes": "归还后很快又租",
    "Jobs interrupted": "被中断的作业",
    "Suspended": "挂起",
    "Moved at home": "在自有节点间移动",
    "Brought home": "迁回",
    "Exchanged": "交换",
    "Most of one job": "单个作业最多",
    # Plots.
    "Money for rented GPUs, added up": "租用 GPU 的累计花费",
    "US dollars, by days since the start": "美元，横轴为开始后的天数",
    "Work that waits, in GPUs": "等待中的工作（GPU 数）",
    "GPUs that waiting jobs ask for, by days since the start": (
        "等待中的作业要求的 GPU 数，横轴为开始后的天数"
    ),
    "{count} more runs are in the tables only.": "另有 {count} 次运行只列在表中。",
    "GPUs in use: {policy}": "使用中的 GPU：{policy}",
    "GPUs, by days since the start": "GPU 数，横轴为开始后的天数",
    "at home, with work": "自有，在工作",
    "rented, with work": "租用，在工作",
    "rented, without work": "租用，无工作",
    "owned: {gpus} GPUs": "自有：{gpus} 块 GPU",
    "How long jobs wait before they start": "作业开始前的等待时间",
    "minutes": "分钟",
    "half of the jobs wait less": "一半作业低于此值",
    "95 of 100 wait less": "95 % 的作业低于此值",
    "99 of 100 wait less": "99 % 的作业低于此值",
    "Promises broken": "未守住的承诺",
    "percent; the line is what may be broken, {share}": "百分比；虚线为允许值 {share}",
    "jobs that started too late": "开始过晚的作业",
    "work, by GPU-time, that ended too late": "完成过晚的工作量（按 GPU 时间）",
    "What the rent was for": "租金花在哪里",
    "US dollars": "美元",
    "work, while home was full": "工作，自有已满",
    "work, while GPUs at home were free (lock-in)": "工作，但自有 GPU 空闲（锁定）",
    "no work: booting, idle, being returned": "无工作：启动、空闲、归还中",
    "Why nodes were rented": "租用的原因",
    "US dollars, by the code of the reason; docs/reasons.md explains each": (
        "美元，按原因代码；含义见 docs/reasons.md"
    ),
    # Assumptions.
    "Assumptions": "假设",
    "Simulated, not measured: the jobs, when they came and how long they ran are from the trace; "
    "the policy sees only what it would see in life, neither run times nor anything to come.": (
        "这是模拟而非实测：作业及其到达与运行时间来自负载记录；"
        "策略只看到实际运行时能看到的信息，不知道运行时间，也不知道未来。"
    ),
    "Rented GPUs are as fast as those at home, and run times do not change with the place.": (
        "租用的 GPU 与自有的一样快，运行时间不随地点变化。"
    ),
    "Start-up of rented machines, refusals and what an interruption costs are modelled; see the "
    "parameters.": "租用机器的启动、无货以及中断的代价均按参数建模。",
    "The cluster is empty at the start. Traffic between the sites, disks, taxes and discounts are "
    "not in the price.": "开始时集群为空。站点间流量、磁盘、税费与折扣不计入价格。",
    "The other policies run as their names in the parameters say. Unless the title says that they "
    "were tuned to this trace, better settings of them may exist.": (
        "其他策略的设置见参数表。除非标题注明已针对该负载调优，否则它们可能有更好的设置。"
    ),
    "Money is price times billed time: an estimate, not a bill.": (
        "花费为价格乘以计费时间，是估算，不是账单。"
    ),
    "What the GPUs at home are taken to cost": "自有 GPU 的成本假设",
    "Number": "项目",
    "Value": "值",
    "Source": "来源",
    "given": "由用户给出",
    "our assumption": "我们的假设",
    "Purchase, $ per GPU": "采购价，美元/GPU",
    "NVIDIA DGX A100, 8 GPUs, list price $199,000 when it came out (May 2020)": (
        "NVIDIA DGX A100（8 GPU），2020 年 5 月发布时标价 199,000 美元"
    ),
    "Network, storage and racks, share of the purchase": "网络、存储与机柜，占采购价比例",
    "Written off over, years": "折旧年限，年",
    "Interest per year, share": "年利率",
    "Support and spare parts per year, share of all bought": "每年维保与备件，占采购总额比例",
    "Power, W per GPU": "功率，瓦/GPU",
    "NVIDIA DGX A100: at most 6.5 kW for 8 GPUs; charged all the time, so rather high": (
        "NVIDIA DGX A100：8 GPU 最大 6.5 千瓦；按全时计费，偏高"
    ),
    "Power of the site over that of the machines (PUE)": "机房总功率与设备功率之比（PUE）",
    "Uptime Institute, average of the industry in 2023": "Uptime Institute，2023 年行业平均",
    "Electricity, $ per kWh": "电价，美元/千瓦时",
    "our assumption, not looked up; differs much by place: give your own with --price-per-kwh": (
        "我们的假设，未经查证；各地差别很大：请用 --price-per-kwh 给出您的电价"
    ),
    "Space with cooling, $ per kW and month": "机房（含制冷），美元/千瓦/月",
    "CBRE, North America Data Center Trends H2 2024: average asked for 250 to 500 kW": (
        "CBRE，North America Data Center Trends H2 2024：250–500 千瓦平均报价"
    ),
    "Staff, $ per person and year": "人力，美元/人/年",
    "median wage of US system administrators, $90,520 (BLS, May 2022), plus what is paid on "
    "top, taken as 30 % of the whole": (
        "美国系统管理员年薪中位数 90,520 美元（BLS，2022 年 5 月），附加成本按总额的 30 % 计"
    ),
    "GPUs that one person looks after": "每人负责的 GPU 数",
    "Parameters": "参数",
    "Parameter": "参数",
    "policy {name}": "策略 {name}",
    "all others": "其他",
    "not known to this page": "本页未获得",
    "Made by": "生成命令",
    # Advice.
    "What to own and what to rent: {source}": "自有多少、租用多少：{source}",
    "{days} days with {jobs} jobs; {share} of them can be stopped and continued "
    "elsewhere. An estimate, not an offer.": (
        "{days} 天，{jobs} 个作业；其中 {share} 可以中断并在别处继续。这是估算，不是报价。"
    ),
    "Own none and rent all: {total} a year.": "不购买，全部租用：每年 {total}。",
    "Own {gpus} GPUs and rent none: {total} a year.": "自有 {gpus} 块 GPU，不租用：每年 {total}。",
    "Own {gpus} GPUs and rent what goes beyond: {own} a year for your own and {rented} for "
    "rented ones, {total} in all.": (
        "自有 {gpus} 块 GPU，超出部分租用：每年自有 {own}，租用 {rented}，合计 {total}。"
    ),
    "Renting all would cost about {none} a year, owning enough for the peak of {peak_gpus} "
    "GPUs {peak}.": "全部租用每年约 {none}，按峰值 {peak_gpus} 块 GPU 全部自有为 {peak}。",
    "A GPU of your own costs {own} an hour, used or not, and a rented one {rented}: at "
    "these prices owning never pays.": (
        "自有 GPU 无论是否使用每小时成本 {own}，租用 {rented}：按此价格购买总不划算。"
    ),
    "A GPU of your own costs {own} an hour, used or not, and a rented one {rented}: owning "
    "pays for a GPU that is needed more than {share} of the time.": (
        "自有 GPU 无论是否使用每小时成本 {own}，租用 {rented}："
        "一块 GPU 有 {share} 以上时间被需要时，购买才划算。"
    ),
    "This is an estimate; no run was simulated.": "这是估算，没有进行模拟。",
    "No size that was simulated kept its promises, so take this with care.": (
        "所模拟的规模都没有守住承诺，请谨慎参考。"
    ),
    "If no job could be stopped and continued elsewhere, that would cost {extra} more a year.": (
        "如果作业都不能中断后在别处继续，每年将多花 {extra}。"
    ),
    "Stopping and moving jobs does not pay here: without it that would cost {less} less a year.": (
        "这里中断与迁移作业并不划算：不这样做每年可少花 {less}。"
    ),
    "GPUs to own": "自有 GPU 数",
    "a year in all": "每年合计",
    "of the time: break-even of a GPU": "的时间：一块 GPU 的盈亏平衡点",
    "GPUs needed: mean / peak": "所需 GPU：平均 / 峰值",
    "Sizes": "各种规模",
    "What a GPU of your own costs a year": "一块自有 GPU 每年的成本",
    "Part": "项目",
    "Cost": "成本",
    "in all": "合计",
    "purchase and interest": "采购与利息",
    "support and spare parts": "维保与备件",
    "electricity": "电费",
    "space with cooling": "机房与制冷",
    "staff": "人力",
    "{rate} {currency} are one US dollar; prices above are in US dollars.": (
        "1 美元合 {rate} {currency}；上表价格以美元计。"
    ),
    "simulated": "模拟",
    "estimate": "估算",
    "Own GPUs": "自有 GPU",
    "How": "方式",
    "Own, a year": "自有，每年",
    "Rented, a year": "租用，每年",
    "In all": "合计",
    "95 of 100 jobs wait less, minutes": "95 % 的作业等待低于（分钟）",
    "Home has work": "自有在工作",
    "in all (line: estimate, dots: simulated)": "合计（线：估算，点：模拟）",
    "rented": "租用",
    "own": "自有",
    "Cost a year, by how many GPUs you own": "每年成本与自有 GPU 数",
    "{currency} a year, by GPUs at home; the dotted line is the advice": (
        "每年 {currency}，横轴为自有 GPU 数；虚线为建议"
    ),
    "How much of the time so many GPUs are needed": "需要这么多 GPU 的时间比例",
    "percent of the time, by GPUs; above the dotted line it pays to own them": (
        "时间百分比，横轴为 GPU 数；高于虚线时购买划算"
    ),
    "needed": "需要",
    "A year is taken to go on like the time that was looked at; the work does not grow.": (
        "假设全年都与所考察的时段一样，工作量不增长。"
    ),
    "The estimate lets every job start at once, and moves work home at once and for nothing.": (
        "估算假设作业立即开始，且迁回自有机器立即完成、没有代价。"
    ),
    "A rented GPU is as fast as one at home, and one can be had whenever it is asked for, but for "
    "the refusals and start-up times of the simulation.": (
        "租用的 GPU 与自有的一样快；除模拟中的无货与启动时间外，随时可租。"
    ),
    "Rented GPUs are paid by the second at one price: no reservation, no discount, no spot.": (
        "租用按秒以单一价格计费：没有预留、折扣或竞价实例。"
    ),
    "Own GPUs never break; what they are worth after the last year is not counted.": (
        "自有 GPU 不会损坏；折旧期后的残值不计。"
    ),
}
"""What is not here stays English."""
