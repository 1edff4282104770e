"""Dispatch and combine of another project on the same GPUs and with the same routing, for scripts/compare_moe.py: a
process for each rank, each prints lines of JSON. Arguments: PEER RANK RANKS FILE-TO-MEET-AT PLAN; the plan is a file of
JSON: hidden, sms, iterations, warmup, flush_l2, and cases, each with its routing by rank.
With one argument, "probe": what can be imported here, and why the rest cannot.

Lines: {"version"}; {"case", "operation", "window", "us": [of each iteration]}; {"case", "checked": what was compared};
{"case", "nvlink_sent_bytes", "calls"} or {"case", "nvlink_reason"}.

Before each timed call all GPUs meet in an all_reduce. Window "kernels": behind a delay, so that the host is ahead;
"call": the host waits for the meeting, then begins. Events are on the caller's stream."""
import importlib
import json
import sys

GROUP = 128  # channels that share a scale
E4M3_MOST = 448.0
DELAY_CYCLES = 1_200_000  # about 0.6 ms: longer than any library's work on the host before its last launch
FLUSHED_BYTES = 256 << 20
NVLINK_TX = 138  # NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, in KiB
NEAR = 0.02

PROBES = {
    "deepep-v1": ("deep_ep", "Buffer"),
    "deepep-v2": ("deep_ep", "ElasticBuffer"),
    "hybrid-ep": ("deep_ep", "HybridEPBuffer"),
}


def probe():
    """{peer: "" or why not}"""
    reasons = {}
    for name, (module, member) in PROBES.items():
        try:
            found = hasattr(importlib.import_module(module), member)
            reasons[name] = "" if found else f"the installed {module} has no {member}"
        except Exception as problem:  # pylint: disable=broad-except
            reasons[name] = f"import {module}: {type(problem).__name__}: {problem}".splitlines()[0]
    return reasons


class Wrong(Exception):
    """Data is not what the routing says."""


def require(holds, what):
    if not holds:
        raise Wrong(what)


class NvlinkCounter:
    """Payload that this rank's GPU has sent over all its NVLinks."""

    def __init__(self, device):
        self.reason = ""
        try:
            self.nvml = importlib.import_module("pynvml")
            self.nvml.nvmlInit()
            import torch  # pylint: disable=import-outside-toplevel
            uuid = "GPU-" + str(torch.cuda.get_device_properties(device).uuid)
            self.handle = self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode())
            self.links = []
            for link in range(18):
                try:
                    if self.nvml.nvmlDeviceGetNvLinkState(self.handle, link):
                        self.links.append(link)
                except self.nvml.NVMLError:
                    break
            if not self.links:
                self.reason = "NVML shows no active NVLink"
            self.sent_bytes()
        except Exception as problem:  # pylint: disable=broad-except
            self.reason = f"{type(problem).__name__}: {problem}".splitlines()[0]

    def sent_bytes(self):
        if self.reason:
            return None
        values = self.nvml.nvmlDeviceGetFieldValues(self.handle, [(NVLINK_TX, link) for link in self.links])
        if any(value.nvmlReturn != 0 for value in values):
            self.reason = "the driver does not count NVLink traffic by link"
            return None
        return sum(value.value.ullVal for value in values) << 10


class Meter:
    """Times calls. The clock is the GPU's, by events."""

    def __init__(self, torch, dist, plan, counter):
        self.torch, self.dist, self.plan, self.counter = torch, dist, plan, counter
        self.token = torch.zeros(1, device="cuda", dtype=torch.float32)
        self.scratch = torch.empty(FLUSHED_BYTES if plan["flush_l2"] else 1, dtype=torch.uint8, device="cuda")
        self.calls, self.untimed_bytes = 0, 0

    def prepare(self, before):
        """What goes before a call; its bytes on NVLinks are not the call's."""
        sent = self.counter.sent_bytes()
        before()
        self.torch.cuda.synchronize()
        if sent is not None:
            self.untimed_bytes += (self.counter.sent_bytes() or sent) - sent

    def once(self, operation, window):
        """@param operation a call, or what goes before it untimed and the call"""
        torch = self.torch
        call = operation
        if isinstance(operation, tuple):
            before, call = operation
            self.prepare(before)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        if self.plan["flush_l2"]:
            self.scratch.zero_()
        if window == "kernels":
            torch.cuda._sleep(DELAY_CYCLES)  # pylint: disable=protected-access
        self.dist.all_reduce(self.token)
        if window == "call":
            torch.cuda.synchronize()
        begin.record()
        result = call()
        end.record()
        torch.cuda.synchronize()
        self.calls += 1
        del result
        return begin.elapsed_time(end) * 1e3

    def times(self, operation, window):
        for _ in range(self.plan["warmup"]):
            self.once(operation, window)
        return [self.once(operation, window) for _ in range(self.plan["iterations"])]


class Data:
    """Rows whose values say where they come from, choices and weights of this rank."""

    def __init__(self, torch, plan, case, rank, ranks):
        self.torch, self.rank, self.ranks = torch, rank, ranks
        self.hidden, self.experts = plan["hidden"], case["experts"]
        self.tokens = len(case["routing"][rank])
        self.top_k = case["top_k"]
        self.choices = torch.tensor(case["routing"][rank], dtype=torch.int64, device="cuda")
        self.weights = torch.full((self.tokens, self.top_k), 1.0 / self.top_k, dtype=torch.float32, device="cuda")
        self.max_tokens = max(len(tokens) for tokens in case["routing"])
        self.x = self.rows(rank, self.tokens)
        self.fp8 = self.cast(self.x) if case["dtype"] == "fp8" else None
        local = self.experts // ranks
        everywhere = [[sorted({expert // local for expert in experts if expert >= 0}) for experts in tokens]
                      for tokens in case["routing"]]
        self.expected = sorted(self.number(source, token) for source, tokens in enumerate(everywhere)
                               for token, to in enumerate(tokens) if rank in to)
        self.copies = torch.tensor([len(to) for to in everywhere[rank]], dtype=torch.float32, device="cuda")
        self.selected = (self.choices >= 0).sum(dim=1).to(torch.float32)

    @staticmethod
    def number(rank, token):
        """From 1 to 240: BF16 has whole numbers up to 256."""
        return (rank * 101 + token * 7) % 240 + 1

    def rows(self, rank, tokens):
        numbers = [self.number(rank, token) for token in range(tokens)]
        column = self.torch.tensor(numbers, dtype=self.torch.bfloat16, device="cuda").view(-1, 1)
        return column.expand(-1, self.hidden).contiguous()

    def cast(self, x):
        torch = self.torch
        groups = x.float().view(x.shape[0], -1, GROUP)
        scales = groups.abs().amax(dim=2).clamp(1e-4) / E4M3_MOST
        values = (groups / scales.unsqueeze(2)).to(torch.float8_e4m3fn).view(x.shape[0], -1)
        return values, scales.contiguous()

    def input(self):
        return self.fp8 if self.fp8 else self.x

    def as_bf16(self, received):
        if not isinstance(received, tuple):
            return received.to(self.torch.bfloat16)
        values, scales = received
        wide = values.float().view(*values.shape[:-1], -1, GROUP) * scales.float().unsqueeze(-1)
        return wide.view(values.shape).to(self.torch.bfloat16)

    def check_rows(self, rows):
        """Each row once, with all its channels; in any order."""
        require(rows.shape[0] == len(self.expected),
                f"{rows.shape[0]} rows received, and the routing sends {len(self.expected)}")
        if not self.expected:
            return
        wide = rows.float()
        want = self.torch.tensor(self.expected, dtype=self.torch.float32, device="cuda")
        for channel in (wide.amin(dim=1), wide.amax(dim=1)):
            require(bool(((channel.sort().values - want).abs() <= NEAR * want).all()),
                    "received rows are not those that the routing sends")

    def check_combined(self, combined, factor):
        want = self.x.float() * factor.view(-1, 1)
        require(bool(((combined[:self.tokens].float() - want).abs() <= NEAR * want.abs() + 1e-3).all()),
                "combined rows are not the sums of what was received")


CHECKED = {
    "ht": "the number of received rows, the smallest and largest channel of each, and every channel of the sums, "
          "within 2%, once before the timed calls",
    "ll": "the number of received rows, and every channel of the weighted sums within 2%, once before the timed calls",
}


class DeepEpV1:
    """The `Buffer` of DeepEP: in V2's package the legacy one."""

    def __init__(self, module, group, plan, sms):
        self.module, self.group, self.plan, self.sms = module, group, plan, sms
        self.buffer, self.low = None, False

    def open(self, data, low):
        kinds = {"num_nvl_bytes": int(2e9), "num_rdma_bytes": 0}
        if low:
            size = self.module.Buffer.get_low_latency_rdma_size_hint(data.max_tokens, data.hidden, data.ranks,
                                                                     data.experts)
            kinds = {"num_rdma_bytes": size, "low_latency_mode": True,
                     "num_qps_per_rank": data.experts // data.ranks, "allow_nvlink_for_low_latency_mode": True}
        self.buffer = self.module.Buffer(self.group, **kinds)
        self.module.Buffer.set_num_sms(self.sms)

    def operations(self, data, low):
        self.open(data, low)
        return self.low_latency(data) if low else self.high_throughput(data)

    def choices(self, data):
        return data.choices.to(getattr(self.module, "topk_idx_t", data.torch.int64))

    def high_throughput(self, data):
        choices = self.choices(data)

        def dispatch():
            to_rank, _, to_expert, in_rank, _ = self.buffer.get_dispatch_layout(choices, data.experts)
            return self.buffer.dispatch(data.input(), num_tokens_per_rank=to_rank, is_token_in_rank=in_rank,
                                        num_tokens_per_expert=to_expert, topk_idx=choices,
                                        topk_weights=data.weights)

        received, _, _, _, handle, _ = dispatch()
        rows = data.as_bf16(received)
        data.check_rows(rows)
        data.check_combined(self.buffer.combine(rows, handle)[0], data.copies)
        return {"dispatch": dispatch, "cached-dispatch": lambda: self.buffer.dispatch(data.input(), handle=handle),
                "combine": lambda: self.buffer.combine(rows, handle)}

    def low_latency(self, data):
        choices = self.choices(data)

        def dispatch():
            return self.buffer.low_latency_dispatch(data.x, choices, data.max_tokens, data.experts, use_fp8=True,
                                                    async_finish=False, return_recv_hook=False)

        received, counts, handle, _, _ = dispatch()
        rows = data.as_bf16(received)
        total = int(counts.sum().item())
        require(total == data.received_selections,
                f"{total} rows received, and {data.received_selections} were selected")

        def combine(of=None):
            return self.buffer.low_latency_combine(rows, choices, data.weights, of or handle, async_finish=False,
                                                   return_recv_hook=False)

        data.check_combined(combine()[0], data.selected / data.top_k)
        held = {}

        def dispatch_again():
            held["handle"] = dispatch()[2]

        # A combine is of the dispatch before it: their buffers take turns.
        return {"dispatch": dispatch_again, "combine": (dispatch_again, lambda: combine(held["handle"]))}

    def close(self):
        self.buffer = None


class DeepEpV2:
    """The `ElasticBuffer` of DeepEP."""

    def __init__(self, module, group, plan, sms):
        self.module, self.group, self.plan, self.sms, self.buffer = module, group, plan, sms, None

    def operations(self, data, low):
        require(not low, "ElasticBuffer has no low-latency mode of its own")
        self.buffer = self.module.ElasticBuffer(self.group, num_max_tokens_per_rank=data.max_tokens,
                                                hidden=data.hidden, explicitly_destroy=True)
        choices = data.choices.to(self.module.topk_idx_t)

        def dispatch():
            return self.buffer.dispatch(x=data.input(), topk_idx=choices, topk_weights=data.weights,
                                        num_experts=data.experts, num_max_tokens_per_rank=data.max_tokens,
                                        expert_alignment=1, num_sms=self.sms, do_cpu_sync=True)

        received, _, weights, handle, _ = dispatch()
        rows = data.as_bf16(received)
        data.check_rows(rows)

        def combine():
            return self.buffer.combine(x=rows, topk_weights=weights, handle=handle, num_sms=self.sms)

        data.check_combined(combine()[0], data.copies)
        return {"dispatch": dispatch, "combine": combine,
                "cached-dispatch": lambda: self.buffer.dispatch(x=data.input(), num_sms=self.sms, handle=handle)}

    def close(self):
        if self.buffer is not None:
            self.buffer.destroy()
        self.buffer = None


class HybridEp:
    """The `HybridEPBuffer` of DeepEP's branch hybrid-ep."""

    def __init__(self, module, group, plan, sms):
        self.module, self.group, self.plan, self.sms, self.buffer = module, group, plan, sms, None

    def operations(self, data, low):
        require(not low, "Hybrid-EP has no low-latency mode")
        self.buffer = self.module.HybridEPBuffer(
            group=self.group, hidden_dim=data.hidden, max_num_of_tokens_per_rank=data.max_tokens,
            num_local_experts=data.experts // data.ranks, use_fp8=data.fp8 is not None,
            num_sms_dispatch_api=self.sms, num_sms_combine_api=self.sms)
        hidden, scales = data.fp8 if data.fp8 else (data.x, None)
        known = {"hidden": hidden, "scaling_factor": scales, "topk_idx": data.choices, "topk_weights": data.weights,
                 "num_of_experts": data.experts}
        received, probabilities, received_scales, handle = self.buffer.dispatch(**known)
        rows = data.as_bf16((received, received_scales) if data.fp8 else received)
        data.check_rows(rows)

        def combine():
            return self.buffer.combine(hidden=rows, probs=probabilities, handle=handle)

        data.check_combined(combine()[0], data.copies)
        return {"dispatch": lambda: self.buffer.dispatch(**known), "combine": combine,
                "cached-dispatch": lambda: self.buffer.dispatch(**known, handle=handle)}

    def close(self):
        self.buffer = None


PEERS = {"deepep-v1": DeepEpV1, "deepep-v2": DeepEpV2, "hybrid-ep": HybridEp}


def say(**line):
    print(json.dumps(line), flush=True)


def measure(peer, meter, counter, plan, name, case, rank, ranks):
    data = Data(meter.torch, plan, case, rank, ranks)
    local = case["experts"] // ranks
    data.received_selections = sum(expert >= 0 and expert // local == rank for tokens in case["routing"]
                                   for experts in tokens for expert in experts)
    operations = peer.operations(data, case["mode"] == "ll")
    say(case=name, checked=CHECKED[case["mode"]])
    windows = plan["windows"]
    for operation in case["operations"]:
        meter.calls, meter.untimed_bytes, before = 0, 0, counter.sent_bytes()
        for window in windows:
            say(case=name, operation=operation, window=window, us=meter.times(operations[operation], window))
        after = counter.sent_bytes()
        if counter.reason:
            say(case=name, operation=operation, nvlink_reason=counter.reason)
        else:
            say(case=name, operation=operation, nvlink_sent_bytes=after - before - meter.untimed_bytes,
                calls=meter.calls)


def main():
    if sys.argv[1:] == ["probe"]:
        print(json.dumps(probe()))
        return
    name, rank, ranks, place, plan_file = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]
    with open(plan_file, encoding="utf-8") as file:
        plan = json.load(file)
    import torch  # pylint: disable=import-outside-toplevel
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{place}", rank=rank, world_size=ranks,
                            device_id=torch.device("cuda", rank))
    module = importlib.import_module(PROBES[name][0])
    say(version=f"{getattr(module, '__version__', 'unknown')}, torch {torch.__version__}, NCCL "
                + ".".join(map(str, torch.cuda.nccl.version())))
    group = dist.new_group(list(range(ranks)))
    counter = NvlinkCounter(rank)
    meter = Meter(torch, dist, plan, counter)
    for case_name, case in plan["cases"].items():
        peer = PEERS[name](module, group, plan, plan["sms"])
        try:
            measure(peer, meter, counter, plan, case_name, case, rank, ranks)
        except Exception as problem:  # pylint: disable=broad-except
            # The same on all ranks, or the others' waits end by the library's own timeout.
            say(case=case_name, failed=f"{type(problem).__name__}: {problem}".splitlines()[0])
        finally:
            peer.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
