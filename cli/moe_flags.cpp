#include "cli/moe_flags.h"

#include <algorithm>

#include "cli/routing_flags.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

void add_shape_flags(CLI::App& command, moe::Request& request) {
  command.add_option("--num-tokens", request.tokens, "Tokens of a rank (default 128)")
      ->type_name("N[,N...]");
  command.add_option("--hidden", request.hidden, "Channels of a token (default 7168)")
      ->type_name("N[,N...]");
  command.add_option("--num-topk", request.top_k, "Experts that a token chooses (default 8)")
      ->type_name("N[,N...]");
  command.add_option("--num-experts", request.experts, "Experts of all ranks (default 256)")
      ->type_name("N[,N...]");
  command
      .add_option("--expert-alignment", request.expert_alignment,
                  "Counts per expert are rounded up to a multiple of it")
      ->check(CLI::Range(0, 1 << 24));
  command.add_option("--seed", request.seed, "Of routing and data (default 1)")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{0xffffffff}));
}

void add_recorded_routing_flags(CLI::App& command, MoeFlags& flags) {
  add_routing_flags(command, flags.request, "--record", "Rank 0", "the last rank");
  command.add_option("--record", flags.record, "Write the routing to this file")->type_name("FILE");
}

void add_mode_flags(CLI::App& command, MoeFlags& flags) {
  moe::Request& request = flags.request;
  command
      .add_option("--mode", request.mode,
                  "ht: counts first, rows without gaps; ll: fixed slots, nothing goes ahead")
      ->check(CLI::IsMember({"ht", "ll"}));
  command.add_option("--dtype", request.dtype, "What a dispatch carries; a combine is bf16")
      ->check(CLI::IsMember({"bf16", "fp8"}));
  command.add_option("--scales", request.scales, "fp8: scales as FP32 or powers of two")
      ->check(CLI::IsMember({"float", "ue8m0"}));
  command
      .add_option("--combine", request.combine,
                  "ll: weighted adds a row per choice at home, partial a row per rank")
      ->check(CLI::IsMember({"weighted", "partial"}));
  command
      .add_option("--layout", request.layout,
                  "ll: received rows by source rank, or packed per expert besides")
      ->check(CLI::IsMember({"source", "expert"}));
  command.add_flag("--topk-weights", request.weights_home,
                   "ht: combine brings the weights of the choices home as well");
  command.add_flag("--bias", request.bias, "ht: combine adds a bias to each token");
  command.add_flag("--flat", request.flat,
                   "ht, several nodes: every row goes straight, none is handed on");
  command.add_option("--backend", flags.backend, "Who moves the rows")
      ->check(CLI::IsMember({"host", "gpu"}));
  command
      .add_option("--num-sms", request.num_sms,
                  "gpu: SMs that a kernel takes at most (default, and 0: its own choice)")
      ->type_name("N[,N...]");
}

void add_settings_flags(CLI::App& command, MoeFlags& flags) {
  command.add_flag("--tune", flags.tune,
                   "Try settings, verify each, say what was tried, and go on with the best");
  const char* const names =
      "sms, warps, stages, kept, self_sms, chunk_bytes, chunk_rows (host: chunk_bytes)";
  command
      .add_option("--dispatch-settings", flags.dispatch_settings,
                  std::string("Of a dispatch, as --tune prints them: ") + names)
      ->type_name("NAME=N[,...]");
  command.add_option("--combine-settings", flags.combine_settings, "Of a combine, in the same way")
      ->type_name("NAME=N[,...]");
}

void add_effort_flags(CLI::App& command, MoeFlags& flags) {
  moe::Effort& effort = flags.effort;
  command.add_option("-n,--iters", effort.iterations, "Timed calls of each operation (default 20)")
      ->check(CLI::Range(1, 1 << 20));
  command.add_option("-w,--warmup", effort.warmup, "Calls before (default 3)")
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option("--verify-every", effort.verify_every,
                  "Verify every Nth iteration too (default: the first and the last)")
      ->check(CLI::Range(1, 1 << 20));
  command.add_flag("--no-verify", flags.no_verify, "Do not compare the data");
  command
      .add_option("--max-delay-us", effort.most_delay_us,
                  "Each PE comes so much later at most, at random")
      ->check(CLI::Range(0, 1'000'000));
  command
      .add_option("--patience-us", flags.request.patience_us,
                  "ll: a rank that does not come in that time is masked, and the rest go on, "
                  "also if its process is stopped or gone")
      ->check(CLI::Range(1.0, 1e9));
  command
      .add_option("--absent", effort.absent,
                  "ll, with --patience-us: at the end this PE stays away from some more calls")
      ->check(CLI::Range(0, 1 << 24));
  command.add_option("--straggler", flags.straggler, "This PE comes so many us late, always")
      ->type_name("PE:US");
  command.add_option("--pin", flags.pin, "auto, none, or CPUs by local rank: 0,2,4-7")
      ->type_name("CPUS");
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
  return {ExitCode::usage, "moe", "", problem, fix};
}

std::optional<std::pair<int, double>> straggler_flag(const std::string& text) {
  if (text.empty())
    return std::nullopt;
  const std::vector<std::string> parts = split(text, ':');
  const auto pe = parse_integer(parts[0]);
  const auto late_us = parts.size() == 2 ? parse_number(parts[1]) : std::nullopt;
  if (!pe || !late_us || *pe < 0 || *pe >= moe::max_ranks || *late_us < 0 || *late_us > 1e6)
    throw bad_moe("--straggler " + printable(text) + " is not PE:MICROSECONDS",
                  "write --straggler 2:500");
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
