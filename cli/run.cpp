// `shmemctl run`: N PEs on this node, without MPI.
#include <algorithm>
#include <iostream>
#include <unistd.h>

#include "cli/context.h"
#include "cli/help_format.h"
#include "cli/moe_flags.h"
#include "cli/progress.h"
#include "cli/similar_names.h"
#include "cli/terminal.h"
#include "src/base/text.h"
#include "src/instruments/launch/core_shares.h"
#include "src/instruments/launch/launch.h"
#include "src/instruments/launch/spawn.h"

namespace shmemctl {

namespace {

constexpr int max_pes = 4096;

struct RunFlags {
  int n_pes = 0;
  int n_nodes = 1;
  bool label = false;
  double timeout_s = 0;
  std::string pin = "auto";
};

Error bad_invocation(const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, "run", "", problem, fix};
}

/// Rejects common flags before `run` that belong to the command: its report, its configuration.
void require_flags_after_command(const Context& context) {
  for (const auto& [flag, value] :
       {std::pair("--json", context.json_path), std::pair("--csv", context.csv_path),
        std::pair("--config", context.config_path)})
    if (!value.empty())
      throw bad_invocation(std::string(flag) + " is an option of the command that run starts",
                           std::string("write it after the command: shmemctl run -n N CMD ") +
                               flag + " FILE");
}

/// The environment of the PEs: this environment, the options given here, and how to format text.
Environment pe_environment(const Context& context) {
  Environment environment = job_environment(context);
  const auto value = [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  // A PE's stdout is a pipe, but its output may still end up on a terminal.
  const bool colour = value("SHMEMCTL_COLOR").empty() && wants_color("auto", context.environment);
  if (colour) {
    environment["SHMEMCTL_COLOR"] = "always";
    if (is_terminal(STDERR_FILENO, context.environment))
      environment.emplace("CLICOLOR_FORCE", "1");
  }
  return environment;
}

/// Whether the command pins its PEs itself: bench, moe and fabric have --pin, too.
bool chooses_cpus(const std::vector<std::string>& command) {
  return std::any_of(command.begin(), command.end(), [](const std::string& argument) {
    return argument == "--pin" || starts_with(argument, "--pin=");
  });
}

/// The CPU binding of the PEs, printed on stderr with --verbose.
std::vector<CpuSet> cpus_of_pes(const Context& context, const RunFlags& flags,
                                const LaunchRequest& request, bool own) {
  const Sysroot sysroot;
  CoreShares shares;
  if (flags.pin == "none")
    shares.reason = "--pin none";
  else if (own && chooses_cpus(request.command))
    shares.reason = "the command has --pin";
  else
    shares = choose_core_shares(sysroot, request.environment, request.n_pes);
  if (context.verbose)
    std::cerr << to_text(shares, read_cpu_layout(sysroot)) << std::flush;
  return shares.cpus;
}

LaunchRequest launch_request(const Context& context, const RunFlags& flags, const CLI::App& app,
                             std::vector<std::string> command) {
  LaunchRequest request;
  if (!command.empty() && starts_with(command[0], "-"))
    throw bad_invocation(printable(command[0]) + " is not an option of run",
                         "write options of the command after its name; shmemctl run --help shows "
                         "the options of run");
  const bool own = !command.empty() && find_subcommand(app, command[0]) != nullptr;
  if (own) {
    request.program = own_program();
    command.insert(command.begin(), "shmemctl");
    request.loss_allowed = moe_allows_loss({command.begin() + 1, command.end()});
  }
  if (!own && !command.empty())
    require_program(app, command[0], context.environment);
  request.one_error = true; // for OpenSHMEM programs too
  request.progress = own && wants_status_line(context);
  request.command = std::move(command);
  request.n_pes = flags.n_pes;
  request.n_nodes = flags.n_nodes;
  request.label = flags.label;
  request.timeout_s = flags.timeout_s;
  const auto common = context.command_line.find("TIMEOUT"); // shmemctl --timeout S run ...
  if (request.timeout_s == 0 && common != context.command_line.end())
    request.timeout_s = parse_number(common->second).value_or(0);
  request.environment = pe_environment(context);
  request.cpus = cpus_of_pes(context, flags, request, own);
  return request;
}

ExitCode run_job(const Context& context, const RunFlags& flags, const CLI::App& app,
                 const std::vector<std::string>& command) {
  require_flags_after_command(context);
  const LaunchRequest request = launch_request(context, flags, app, command);
  LaunchResult result = launch(request);
  // If the program is not ours, only messages of the library are known to be the reason.
  const bool own = !request.program.empty();
  const bool printed = (own || result.error_shown) && all_printed_the_same_failure(result);
  // The PEs have printed why the job failed. The end of the first one is only a note.
  const bool is_note = result.error_shown && !result.timed_out;
  if (is_note)
    for (PeEnd& end : result.ends)
      end.last_words.clear();
  if (const std::string line = failure_line(result); !line.empty() && !printed)
    std::cerr << (is_note ? "shmemctl: " : "shmemctl: error: ") << line << '\n';
  return static_cast<ExitCode>(result.exit_status);
}

} // namespace

void require_program(const CLI::App& app, const std::string& name, const Environment& environment) {
  try {
    find_program(name, environment);
  } catch (const Error& error) {
    const std::vector<std::string> meant = name.find('/') == std::string::npos
                                               ? similar_names(name, subcommand_names(app))
                                               : std::vector<std::string>();
    if (meant.empty())
      throw;
    throw error.with_fix("did you mean " + either(meant) + ", of shmemctl? Otherwise " +
                         error.fix());
  }
}

std::vector<std::string> without_separator(const CLI::App& app,
                                           std::vector<std::string> arguments) {
  const auto run = std::find(arguments.begin(), arguments.end(), "run");
  if (run == arguments.end())
    return arguments;
  const CLI::App* command = app.get_subcommand("run");
  for (auto argument = run + 1; argument != arguments.end() && starts_with(*argument, "-");
       ++argument) {
    if (*argument == "--") {
      arguments.erase(argument);
      break;
    }
    const CLI::Option* option = command->get_option_no_throw(*argument); // none for -n4 and --pes=4
    if (option && option->get_items_expected_max() > 0 && argument + 1 != arguments.end())
      ++argument;
  }
  return arguments;
}

void add_run(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("run", "Start N PEs of a program on this node, without MPI");
  command->footer(
      "The first argument that is not an option starts the command; everything after it belongs\n"
      "to the command. The name of a subcommand (bringup, bench, ...) runs shmemctl itself; write\n"
      "./bringup for a file of that name.\n"
      "--json, --csv and --config are options of the command: write them after it.\n"
      "PE 0 reads stdin, the others /dev/null. Lines of output are never mixed.\n"
      "SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT and SIGWINCH are\n"
      "forwarded; a second SIGINT kills the job.\n"
      "When a PE fails (with moe --patience-us: PE 0), the others have a\n"
      "second to end by themselves, then get SIGTERM and SIGKILL, and no process of the job\n"
      "remains. The exit code is that of the PE that failed first (128 + signal), 124 after\n"
      "--timeout; with moe --patience-us that of PE 0 or, if it is 0, of a PE that was lost.\n"
      "Where run itself would print in colors, the PEs get SHMEMCTL_COLOR=always.\n"
      "Examples:\n"
      "  shmemctl run -n 4 bringup\n"
      "  shmemctl run -n 8 --nodes 2 --label ./program --its-option\n");
  auto flags = std::make_shared<RunFlags>();
  command->fallthrough(false);
  command->prefix_command();
  command->add_option("-n,--pes", flags->n_pes, "PEs to start")
      ->required()
      ->type_name("N")
      ->check(CLI::Range(1, max_pes));
  command
      ->add_option("--nodes", flags->n_nodes,
                   "Split the PEs into N virtual nodes, at most --pes (default 1), which reach "
                   "each other by a network transport only")
      ->type_name("N")
      ->check(CLI::Range(1, max_pes));
  command
      ->add_option(
          "--pin", flags->pin,
          "auto (default): bind each PE to cores of its own near its GPU, except with one PE, with "
          "fewer cores than PEs, or if CPUs are chosen elsewhere; none: bind none")
      ->check(CLI::IsMember({"auto", "none"}));
  command->add_flag("--label", flags->label, "Begin each line of output with its PE, as in [3]");
  command
      ->add_option("--timeout", flags->timeout_s,
                   "End the whole job after SECONDS; 0 (default): never; a --timeout after the "
                   "command limits each single wait instead")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e7));
  add_option(*command, context, "COLOR");
  add_option(*command, context, "LOG_LEVEL");
  command->callback([&app, &context, command, flags] {
    const std::vector<std::string> arguments = command->remaining();
    context.run = [&app, flags, arguments](Context& run_context) {
      return run_job(run_context, *flags, app, arguments);
    };
  });
}

} // namespace shmemctl
