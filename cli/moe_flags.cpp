#include "cli/moe_flags.h"

#include <algorithm>

#include "cli/routing_flags.h"
#include "src/base/text.h"
#include "src/model/moe/shape_rules.h"

namespace shmemctl {

namespace {

void add_shape_flags(CLI::App& command, moe::Request& request) {
  command
      .add_option("--num-tokens", request.tokens,
                  "Tokens per rank, 0 to 1048576 (default 128); each number of a list is measured, "
                  "with lists in several flags every combination")
      ->type_name("N[,N...]");
  command
      .add_option("--hidden", request.hidden,
                  "Hidden size: channels per token, a multiple of 8 up to 1048576, with --dtype "
                  "fp8 of 128 (default 7168); each number of a list is measured")
      ->type_name("N[,N...]");
  command
      .add_option("--num-topk", request.top_k,
                  "Experts per token, 1 to 32 and at most --num-experts (default 8); each number "
                  "of a list is measured")
      ->type_name("N[,N...]");
  command
      .add_option("--num-experts", request.experts,
                  "Experts of all ranks together, at most 65536 and a multiple of the number of "
                  "ranks (default 256); each number of a list is measured")
      ->type_name("N[,N...]");
  command
      .add_option(
          "--expert-alignment", request.expert_alignment,
          "Round the number of received tokens of each expert up to a multiple of N (default 1; "
          "with --backend gpu --mode ll only with --layout expert)")
      ->type_name("N")
      ->check(CLI::Range(1, moe::max_expert_alignment));
  command.add_option("--seed", request.seed, "Seed of routing and data (default 1)")
      ->type_name("SEED")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{0xffffffff}));
}

void add_recorded_routing_flags(CLI::App& command, MoeFlags& flags) {
  add_routing_flags(command, flags.request,
                    "written by --record (a name with / or .) with the same number of ranks, which "
                    "sets --num-tokens, --num-topk and --num-experts, and excludes --uneven, "
                    "--masked and --fewer-by-rank",
                    "Rank 0", "the last rank");
  command.add_flag("--fewer-by-rank", flags.request.fewer_by_rank,
                   "Rank r has --num-tokens minus r tokens, but at least one, as in DeepEP V2's "
                   "test (not with --uneven)");
  command
      .add_option(
          "--record", flags.record,
          "Write the routing to FILE, for --routing FILE of a later run (only with one value in "
          "each flag that takes a list)")
      ->type_name("FILE");
}

void add_mode_flags(CLI::App& command, MoeFlags& flags) {
  moe::Request& request = flags.request;
  command
      .add_option("--mode", request.mode,
                  "ht (default): high throughput; ranks exchange counts, then send the rows (the "
                  "tokens' data). ll: low latency; rows are sent immediately, to fixed slots")
      ->check(CLI::IsMember({"ht", "ll"}));
  command
      .add_option("--dtype", request.dtype,
                  "Data type of dispatched rows (default bf16); combine always carries bf16")
      ->check(CLI::IsMember({"bf16", "fp8"}));
  command
      .add_option("--scales", request.scales,
                  "Scaling factors of FP8 rows. float (default): FP32; ue8m0: powers of two (only "
                  "with --dtype fp8)")
      ->check(CLI::IsMember({"float", "ue8m0"}));
  command
      .add_option(
          "--combine", request.combine,
          "What is returned for a token, only with --mode ll. weighted (default): one row per "
          "expert choice, summed by the token's source rank; partial: one row per rank, which has "
          "summed its own rows (not with --layout expert)")
      ->check(CLI::IsMember({"weighted", "partial"}));
  command
      .add_option("--layout", request.layout,
                  "Order of received rows. source (default): by source rank; expert: also packed "
                  "per expert (only with --mode ll and --combine weighted)")
      ->check(CLI::IsMember({"source", "expert"}));
  command.add_flag(
      "--topk-weights", request.combined_weights,
      "Combine also returns the weight of each of a token's choices, summed over the ranks (only "
      "with --mode ht)");
  command.add_flag("--bias", request.bias,
                   "Combine adds a bias to each token (only with --mode ht)");
  command.add_flag("--flat", request.flat,
                   "Send one row directly to each destination rank, instead of one to its node, "
                   "which forwards it to the ranks there (only with --mode ht and several nodes)");
  command
      .add_option("--backend", flags.backend,
                  "What moves the rows. host (default): the CPU, by one-sided operations; gpu: "
                  "kernels, whose limits of tokens, experts and hidden size are lower")
      ->check(CLI::IsMember({"host", "gpu"}));
  command
      .add_option(
          "--num-sms", request.num_sms,
          "Most SMs that a kernel may use; 0 (default): chosen for each kernel; each number of the "
          "list is measured (only with --backend gpu)")
      ->type_name("N[,N...]");
}

void add_settings_flags(CLI::App& command, MoeFlags& flags) {
  command.add_flag("--tune", flags.tune,
                   "Before each point, try launch settings, verify and time each, and print them "
                   "all; then measure the point with the best (not with --dispatch-settings, "
                   "--combine-settings, --straggler or --max-delay-us)");
  command
      .add_option("--dispatch-settings", flags.dispatch_settings,
                  "Launch settings of dispatch, as --tune prints them. --backend host: "
                  "chunk_bytes; gpu: sms and, with --mode ht, warps, stages, kept, self_sms and "
                  "in_place or, over a network, chunk_rows (not with --tune)")
      ->type_name("NAME=N[,...]");
  command
      .add_option("--combine-settings", flags.combine_settings,
                  "Launch settings of combine. --backend host: chunk_bytes; gpu: sms, warps, "
                  "stages and chunk_bytes or, over a network, sms and, with --mode ht, chunk_rows "
                  "(not with --tune)")
      ->type_name("NAME=N[,...]");
}

void add_effort_flags(CLI::App& command, MoeFlags& flags) {
  moe::Effort& effort = flags.effort;
  command.add_option("-n,--iters", effort.iterations, "Timed calls of each operation (default 20)")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("-w,--warmup", effort.warmup, "Warm-up calls of each operation (default 3)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 20));
  CLI::Option* const verify_every =
      command
          .add_option(
              "--verify-every", effort.verify_every,
              "Verify every Nth iteration besides the first and last call (default: only these)")
          ->type_name("N")
          ->check(CLI::Range(1, 1 << 20));
  command
      .add_flag("--no-verify", flags.no_verify,
                "Do not verify the data; rows say that it is unchecked")
      ->excludes(verify_every);
  command
      .add_option("--max-delay-us", effort.max_delay_us,
                  "Delay each PE by a random time of up to US microseconds before each call, "
                  "except calls back to back and in phases (not with --tune or --kernels-only)")
      ->type_name("US")
      ->check(CLI::Range(0, 1'000'000));
  command
      .add_option("--patience-us", flags.request.rank_timeout_us,
                  "Mask a rank that does not arrive at a call within US microseconds, be it slow, "
                  "stopped or dead, and continue without it; default: wait for it, and end if it "
                  "is lost (only with --mode ll; not with --kernels-only)")
      ->type_name("US")
      ->check(CLI::Range(1.0, 1e9));
  command
      .add_option("--absent", effort.absent,
                  "After the timed calls, measure as many in which PE does not take part, so that "
                  "the others must mask it (only with --mode ll and --patience-us)")
      ->type_name("PE")
      ->check(CLI::Range(0, moe::max_ranks - 1));
  command
      .add_option("--straggler", flags.straggler,
                  "Delay PE by US microseconds, 0 to 1000000, before each call, except calls back "
                  "to back and in phases (not with --tune or --kernels-only)")
      ->type_name("PE:US");
  command
      .add_option(
          "--pin", flags.pin,
          "Bind PEs to CPUs. auto (default): each to a core of its own, unless the "
          "launcher has done so; none; or a list with a CPU for each local rank, such as 0,2,4-7")
      ->type_name("CPUS");
  command.add_flag("--flush-l2", flags.start.flush_l2,
                   "Flush the GPU's L2 cache before each timed call (only with --backend gpu)");
  command.add_flag("--kernels-only", flags.start.kernels_only,
                   "Time only the kernels of a call, from a barrier between the GPUs on: without "
                   "launches, and without the skew of the hosts (only with --backend gpu; not with "
                   "--straggler, --max-delay-us or --patience-us)");
  command
      .add_option(
          "--count", flags.count,
          "Add a column of bandwidths by the bytes that another benchmark counts. deepep-v1, "
          "deepep-v2: DeepEP's tests; per-selection: NCCL EP's; own (default): no such column")
      ->check(CLI::IsMember(moe::byte_count_names()));
  command.add_option("--unit", flags.unit, "Unit of bandwidths in the text output (default GB/s)")
      ->check(CLI::IsMember({"GB/s", "Gb/s"}));
}

} // namespace

void add_moe_flags(CLI::App& command, MoeFlags& flags) {
  add_shape_flags(command, flags.request);
  add_recorded_routing_flags(command, flags);
  add_mode_flags(command, flags);
  add_settings_flags(command, flags);
  add_effort_flags(command, flags);
}

bool moe_allows_loss(const std::vector<std::string>& words) {
  return !words.empty() && words[0] == "moe" &&
         std::any_of(words.begin(), words.end(),
                     [](const std::string& word) { return starts_with(word, "--patience-us"); });
}

Error bad_moe(const std::string& problem, const std::string& fix) {
  return Error(ExitCode::usage, "moe", "", problem, fix).on_all_pes();
}

std::optional<std::pair<int, double>> straggler_flag(const std::string& text) {
  if (text.empty())
    return std::nullopt;
  const std::vector<std::string> parts = split(text, ':');
  const auto pe = parse_integer(parts[0]);
  const auto late_us = parts.size() == 2 ? parse_number(parts[1]) : std::nullopt;
  if (!pe || !late_us || *pe < 0 || *pe >= moe::max_ranks || *late_us < 0 || *late_us > 1e6)
    throw bad_moe("--straggler " + printable(text) +
                      " is not PE:US, with 0 to 1000000 microseconds",
                  "write --straggler 2:500 to delay PE 2 by 500 microseconds");
  return std::pair{static_cast<int>(*pe), *late_us};
}

moe::DirectionSettings settings_of(const MoeFlags& flags) {
  moe::DirectionSettings all;
  if (!flags.dispatch_settings.empty())
    all.dispatch = moe::parse_settings("--dispatch-settings", flags.dispatch_settings);
  if (!flags.combine_settings.empty())
    all.combine = moe::parse_settings("--combine-settings", flags.combine_settings);
  return all;
}

} // namespace shmemctl
