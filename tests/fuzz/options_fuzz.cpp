#include <cstdint>
#include <string>

#include "src/base/describe_env.h"
#include "src/base/options.h"
#include "src/base/units.h"

/// The bytes are every option's value, from each place an option can come from.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  Environment environment = {{"SHMEMCTL_" + text.substr(0, 30), text}};
  std::map<std::string, std::string> values;
  for (const OptionSpec& spec : option_table()) {
    values[spec.name] = text;
    environment["NVSHMEM_" + spec.name] = text;
  }
  for (const Options& options : {Options(environment), Options(Environment{}, values)}) {
    for (const OptionSpec& spec : option_table()) {
      options.boolean(spec.name);
      options.integer(spec.name);
      options.number(spec.name);
      options.size_bytes(spec.name);
    }
    describe_environment(options, environment);
  }
  if (const auto bytes = parse_size_bytes(text))
    if (parse_size_bytes(format_size_bytes(*bytes)) != bytes)
      __builtin_trap();
  return 0;
}
