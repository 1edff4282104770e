// The title under which --help shows each option and subcommand.
#include <string>
#include <string_view>
#include <vector>

#include "cli/help_format.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

struct Group {
  const char* subcommand; ///< "*": every subcommand that has no row of its own for the flag
  const char* title;
  const char* flags; ///< long names without dashes, separated by blanks
};

/// A flag that has no row here is listed under "Options".
constexpr Group option_groups[] = {
    {"bench", "Sizes and traffic", "min-bytes max-bytes step-factor traffic pair bidir window"},
    {"bench", "Initiator and memory of the buffers", "initiator memory scope ctas threads graph"},
    {"bench", "Duration, pinning, verification", "iters warmup duration pin seed no-verify quick"},
    {"moe", "Model", "num-tokens hidden num-topk num-experts expert-alignment seed"},
    {"moe", "Routing", "routing num-groups num-topk-groups masked uneven fewer-by-rank record"},
    {"moe", "Dispatch and combine",
     "mode dtype scales combine layout topk-weights bias flat backend num-sms tune "
     "dispatch-settings combine-settings"},
    {"moe", "Duration, pinning, verification",
     "iters warmup verify-every no-verify pin flush-l2 kernels-only"},
    {"moe", "Slow and lost ranks", "max-delay-us patience-us absent straggler"},
    {"sim", "Cluster", "nodes fabric leaf-nodes oversubscription nic-gbits nvlink-gbytes"},
    {"sim", "Traffic",
     "pattern bytes ep-ranks num-tokens hidden num-topk num-experts routing num-groups "
     "num-topk-groups masked uneven mode flat dtype combine copies"},
    {"sim", "What if", "kill-nic slow-nic move-expert"},
    {"sim", "Random steps, and what is listed", "seed steps sample top all"},
    {"bringup", "Runtime", "init-mode check gpus"},
    {"bench", "Runtime", "gpus"},
    {"moe", "Runtime", "gpus"},
    {"bringup", "Transports", "remote-transport"},
    {"bench", "Transports", "remote-transport"},
    {"moe", "Transports", "remote-transport"},
    {"explain", "What is read", "from format sysroot catalogue"},
    {"fabric", "What is measured", "cross-rail quick soak patterns pin"},
    {"fabric", "Runtime", "gpus"},
    {"fabric", "Transports", "remote-transport"},
    {"gather", "What is written", "output keep-names"},
    {"inspect", "Which processes", "user all"},
    {"inspect", "How long", "window watch duration"},
    {"*", "Runtime", "bootstrap symmetric-size heap device-path"},
    {"*", "Transports",
     "transport ib-gid-index ib-sl ib-traffic-class ib-atomics emulated-hca-over "
     "libfabric-provider libfabric-profile"},
    {"*", "Mapping of PEs to NICs",
     "policy world nvshmem-version pes-per-node gpus hca-list hca-pe-mapping "
     "enable-nic-pe-mapping hca-prefix netdevs-policy disable-data-direct remote-transport "
     "ib-enable-ibgda ibgda-enable-multi-port"},
    {"*", "What is read", "from format sysroot sysroot-after"},
};

constexpr Group subcommand_groups[] = {
    {"", "Look at a machine", "check topo doctor env gather"},
    {"", "Measure a job", "run bringup bench moe"},
    {"", "Look at a running job", "inspect"},
    {"", "Find the hot spot", "hotspots fabric sim"},
    {"", "Look at a job that failed", "explain"},
    {"", "Reports", "report"},
    {"", "This program", "help version completion"},
};

struct Example {
  const char* subcommand; ///< "report show"
  const char* text;
};

/// Examples for subcommands whose footers have no examples.
constexpr Example examples[] = {
    {"report show", "Example: shmemctl report show put.json"},
    {"report validate", "Example: shmemctl report validate runs/*.json"},
    {"report schema", "Example: shmemctl report schema > shmemctl-report.schema.json"},
    {"report csv", "Example: shmemctl report csv put.json -o put.csv"},
    {"report check",
     "Example: shmemctl report check put.json --require 'put[bytes=1M].bandwidth_GBps>=300'"},
    {"version", "Example: shmemctl version"},
};

bool lists(const Group& group, std::string_view name) {
  const std::vector<std::string> names = split_blanks(group.flags);
  for (const std::string& each : names)
    if (each == name)
      return true;
  return false;
}

const char* title_of(const std::string& subcommand, const std::string& flag) {
  for (const bool own : {true, false})
    for (const Group& group : option_groups)
      if ((own ? subcommand == group.subcommand : group.subcommand == std::string_view("*")) &&
          lists(group, flag))
        return group.title;
  return nullptr;
}

void group_options(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || option->get_lnames().empty())
      continue;
    if (app.get_parent() == nullptr || option == app.get_help_ptr())
      option->group("Common options");
    else if (const char* title = title_of(app.get_name(), option->get_lnames().front()))
      option->group(title);
  }
  for (CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    group_options(*child);
}

void add_examples(CLI::App& app) {
  for (const Example& example : examples) {
    CLI::App* command = &app;
    for (const std::string& name : split_blanks(example.subcommand))
      command = command->get_subcommand(name);
    const std::string notes = command->get_footer();
    if (notes.find("Example") == std::string::npos)
      command->footer(notes.empty() ? example.text : notes + "\n" + example.text);
  }
}

} // namespace

void set_help_groups(CLI::App& app) {
  add_examples(app);
  group_options(app);
  for (CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; }))
    for (const Group& group : subcommand_groups)
      if (lists(group, child->get_name()))
        child->group(group.title);
}

} // namespace shmemctl
