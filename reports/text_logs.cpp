// The content of logs as text: each rank's choices.
#include <algorithm>
#include <fmt/format.h>

#include "reports/json_view.h"
#include "reports/text.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// Rows that are printed unless --verbose asks for all.
constexpr std::size_t max_log_rows = 64;

std::string log_place(const json& place) {
  return view::text(place, "file", "?") + ":" + view::text(place, "line", "?");
}

/// "5d:00.0", "cuda 3", "-": the PCI address if the log has it.
std::string log_gpu(const json& rank) {
  const std::string address = view::text(rank, "gpu_pci");
  if (!address.empty())
    return address;
  const std::string device = view::text(rank, "cuda_device");
  return device.empty() ? "-" : "cuda " + device;
}

std::vector<std::string> choice_cells(const json& choice) {
  const std::string by = view::text(choice, "by_rank");
  std::string transport = view::text(choice, "transport", "?");
  if (view::member(choice, "gpu_direct") == json(true))
    transport += ", GPUDirect";
  if (!by.empty())
    transport += " by rank " + by;
  return {view::text(choice, "library", "?"),   transport,
          view::text(choice, "device", "-"),    view::text(choice, "port", "-"),
          view::text(choice, "gid_index", "-"), view::text(choice, "distance", "-")};
}

std::string log_end(const json& rank) {
  std::string end = view::text(rank, "last_step");
  const std::string missing = view::text(rank, "missing_step");
  if (!missing.empty())
    end += (end.empty() ? "no " : ", no ") + missing;
  return (end.empty() ? "" : end + ", ") + log_place(view::member(rank, "last"));
}

} // namespace

std::string logs_text(const json& logs, const TextStyle& style) {
  if (!logs.is_object())
    return "";
  std::string text;
  double lines = 0, bytes = 0;
  const json& files = view::list(logs, "files");
  for (const json& file : files) {
    lines += view::number(file, "lines").value_or(0);
    bytes += view::number(file, "bytes").value_or(0);
  }
  text = fmt::format("{:.0f} {} of {}, {:.1f} MB, compared with {} known messages\n", lines,
                     lines == 1 ? "line" : "lines", counted(files.size(), "log"), bytes * 1e-6,
                     view::text(logs, "catalogue_messages", "?"));
  const json& ranks = view::list(logs, "ranks");
  Table table({{"rank"},
               {"host"},
               {"GPU"},
               {"library"},
               {"transport"},
               {"NIC"},
               {"port", Align::right},
               {"GID", Align::right},
               {"distance"},
               {"log ends at"}});
  std::size_t rows = 0, left_out = 0;
  for (const json& rank : ranks) {
    const json& choices = view::list(rank, "choices");
    const std::size_t count = std::max<std::size_t>(1, choices.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (rows == max_log_rows && !style.verbose) {
        ++left_out;
        continue;
      }
      ++rows;
      std::vector<std::string> row =
          i == 0 ? std::vector<std::string>{view::text(rank, "rank", view::text(rank, "name", "?")),
                                            view::text(rank, "host", "-"), log_gpu(rank)}
                 : std::vector<std::string>{"", "", ""};
      const std::vector<std::string> cells =
          choices.empty() ? std::vector<std::string>(6, "-") : choice_cells(choices[i]);
      row.insert(row.end(), cells.begin(), cells.end());
      row.push_back(i == 0 ? log_end(rank) : "");
      table.add(row);
    }
  }
  if (!table.empty())
    text += "\n" + table.text(style);
  if (left_out > 0)
    text += fmt::format("... and {} more rows: --verbose or --json has them\n", left_out);
  return text;
}

} // namespace shmemctl
