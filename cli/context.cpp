#include "cli/context.h"

#include <algorithm>
#include <unistd.h>

#include "src/base/text.h"

namespace shmemctl {

Options Context::options() const {
  same_in_job = false;
  return Options(environment, command_line, config.options);
}

std::string own_program() {
  std::string path(4096, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.empty() || ::access(path.c_str(), X_OK) != 0 ? "/proc/self/exe" : path;
}

Environment job_environment(const Context& context) {
  Environment environment = context.environment;
  for (const auto& [name, text] : context.command_line)
    if (name != "TIMEOUT")
      environment["SHMEMCTL_" + name] = text;
  return environment;
}

Environment part_environment(const Context& context) {
  Environment environment = job_environment(context);
  for (const auto& [name, text] : context.config.options)
    if (name != "TIMEOUT" && name.back() != '@' && environment.count("NVSHMEM_" + name) == 0)
      environment.emplace("SHMEMCTL_" + name, text);
  environment[reads_no_config_file] = "1";
  return environment;
}

CLI::Option* add_option(CLI::App& app, Context& context, const std::string& name,
                        const std::string& flag) {
  const OptionSpec& spec = option_spec(name);
  std::string long_flag = "--" + lower(name);
  std::replace(long_flag.begin(), long_flag.end(), '_', '-');
  const std::string flags = flag.empty() ? long_flag : flag;
  auto store = [&context, name](const std::string& text) { context.command_line[name] = text; };
  std::string doc = spec.doc + " [SHMEMCTL_" + name +
                    (spec.nvshmem_alias ? ", NVSHMEM_" + name : "") +
                    (spec.default_value.empty() ? "" : "; default " + spec.default_value) + "]";
  CLI::Option* option = nullptr;
  if (spec.type == OptionType::boolean) {
    option = app.add_flag_function(
        flags + "{1}", [store](std::int64_t) { store("1"); }, doc);
    // A switch may also have a value: --enable-nic-pe-mapping=0.
    option->expected(0, 1)->each([store](const std::string& text) { store(text); });
  } else {
    option = app.add_option_function<std::string>(flags, store, doc);
    option->type_name(option_value_name(spec));
  }
  option->check(
      [&spec](const std::string& text) {
        const std::string problem = option_problem(spec, text, OptionOrigin::command_line);
        return problem.empty() ? std::string() : printable(text) + " is " + problem;
      },
      "", "");
  return option;
}

} // namespace shmemctl
