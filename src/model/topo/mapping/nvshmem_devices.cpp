// NVSHMEM's HCA lists, and the table of devices that it builds from them.
#include "src/model/topo/mapping/nvshmem_devices.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <unordered_set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/mapping/nvshmem_mapping.h"

namespace shmemctl {

namespace {

/// NVSHMEM keeps a name in 64 bytes, the terminating 0 included. The kernel's own limit is the
/// same, so that no device has a longer name.
constexpr std::size_t name_buffer_bytes = 64;
constexpr std::size_t kept_text_bytes = 256;
constexpr std::size_t kept_problems = 100;

/// One part of the list between commas.
struct Item {
  std::string_view text;
  std::size_t column = 0; ///< from 1
};

/// The item, split at its colons into name, port, count and the rest.
struct Fields {
  std::vector<Item> parts;
  bool has(std::size_t index) const { return index < parts.size(); }
};

Fields cut_at_colons(const Item& item) {
  Fields fields;
  std::size_t begin = 0;
  // Everything after the third colon is ignored, so its text is kept whole.
  while (fields.parts.size() < 3) {
    const std::size_t colon = item.text.find(':', begin);
    if (colon == std::string_view::npos)
      break;
    fields.parts.push_back({item.text.substr(begin, colon - begin), item.column + begin});
    begin = colon + 1;
  }
  fields.parts.push_back({item.text.substr(begin), item.column + begin});
  return fields;
}

/// The value that C's atoi() gives for a field on the machines on which NVSHMEM runs: leading
/// blanks and a sign are accepted, the rest after the digits is ignored, nothing readable is 0, and
/// a number is clamped to 64 bits and then cut to its low 32 (so that 99999999999999999999 is -1).
int c_integer(std::string_view text) {
  return static_cast<int>(std::strtol(std::string(text).c_str(), nullptr, 10));
}

/// Records what deviates from the documented syntax, up to a limit.
class Problems {
public:
  explicit Problems(std::vector<HcaListProblem>& out) : out_(out) {}

  void add(const Item& at, std::string problem) {
    if (out_.size() == kept_problems)
      out_.push_back({at.column, "", "there are more problems, which are not listed"});
    if (out_.size() < kept_problems)
      out_.push_back({at.column, kept(at.text), std::move(problem)});
  }

  static std::string kept(std::string_view text) {
    return std::string(text.substr(0, kept_text_bytes));
  }

private:
  std::vector<HcaListProblem>& out_;
};

/// A description of fields that NVSHMEM reads differently from a person: "1x", " 1", "",
/// "4294967297". Empty if there is no difference.
std::string number_problem(const char* what, std::string_view text, int value) {
  if (text.empty())
    return fmt::format("{} is missing; NVSHMEM reads 0", what);
  if (parse_integer(text) == value)
    return "";
  const std::string shown = printable(std::string(text.substr(0, kept_text_bytes)), 40);
  if (parse_integer(text))
    return fmt::format("{} {} does not fit; NVSHMEM reads {}", what, shown, value);
  return fmt::format("{} \"{}\" is not a number; NVSHMEM reads {}", what, shown, value);
}

void check_name(const Item& name, Problems& problems) {
  if (trim(name.text).size() != name.text.size())
    problems.add(name, "blanks around a name belong to the name, so it matches no device");
  if (starts_with(name.text, "^"))
    problems.add(name, "^ excludes only as the first character of the whole list; here it is part "
                       "of a name, which matches no device");
  if (name.text.size() >= name_buffer_bytes)
    problems.add(name, fmt::format("the name is longer than {} bytes, so it matches no device",
                                   name_buffer_bytes - 1));
}

/// What a port number selects, if it is not exactly one port.
const char* selected_by(int port) {
  if (port == -1)
    return "every port";
  return port < 1 ? "no port, so the entry matches nothing" : "";
}

void check_port(const Item& port, int value, Problems& problems) {
  const std::string odd = number_problem("port", port.text, value);
  const std::string selected = selected_by(value);
  if (!odd.empty())
    problems.add(port, selected.empty() ? odd : odd + ": " + selected);
  else if (!selected.empty())
    problems.add(port, fmt::format("port {} selects {}; ports count from 1", value, selected));
}

void check_count(const Item& count, int value, Problems& problems) {
  const std::string odd = number_problem("count", count.text, value);
  if (!odd.empty())
    problems.add(count, odd);
  if (value <= 0)
    problems.add(count, "a count below 1 removes the entry's matches from HCA_PE_MAPPING's "
                        "devices");
}

void check_bytes(std::string_view text, Problems& problems) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  const auto control = std::find_if(text.begin(), text.end(), is_control);
  const auto rest_from = [&](std::size_t at) { return Item{text.substr(at, 16), at + 1}; };
  if (control != text.end())
    problems.add(rest_from(static_cast<std::size_t>(control - text.begin())),
                 *control == '\0' ? "a zero byte ends the list" : "control character");
  if (const std::optional<std::size_t> bad = first_non_utf8(text))
    problems.add(rest_from(*bad), "bytes that are not UTF-8");
}

/// Reads one item into the list, as long as there is room.
void read_item(const Item& item, std::size_t capacity, HcaList& list, Problems& problems) {
  const Fields fields = cut_at_colons(item);
  const Item& name = fields.parts[0];
  if (name.text.empty()) {
    problems.add(item, item.text.empty() ? "empty item" : "no name before the colon: ignored");
    return;
  }
  HcaListEntry entry;
  entry.name = std::string(name.text.substr(0, name_buffer_bytes));
  entry.column = item.column;
  entry.text = Problems::kept(item.text);
  check_name(name, problems);
  if (fields.has(1)) {
    entry.port = c_integer(fields.parts[1].text);
    check_port(fields.parts[1], entry.port, problems);
  }
  const bool last = list.entries.size() + 1 == capacity;
  if (fields.has(2) && last) {
    problems.add(fields.parts[2],
                 fmt::format("NVSHMEM stops reading at entry {}, before its count", capacity));
  } else if (fields.has(2)) {
    entry.count = c_integer(fields.parts[2].text);
    check_count(fields.parts[2], entry.count, problems);
  }
  if (fields.has(3))
    problems.add(fields.parts[3], "everything after the third colon is ignored");
  list.entries.push_back(std::move(entry));
}

} // namespace

HcaList parse_hca_list(const std::string& text, std::size_t capacity) {
  HcaList list;
  Problems problems(list.problems);
  check_bytes(text, problems);

  // NVSHMEM sees a C string.
  std::string_view rest = std::string_view(text).substr(0, text.find('\0'));
  std::size_t column = 1;
  list.exclude = starts_with(rest, "^");
  if (list.exclude) {
    rest.remove_prefix(1);
    ++column;
  }
  if (rest.empty()) {
    problems.add({text, 1}, "the list is empty: it filters nothing, as if unset");
    return list;
  }
  while (true) {
    const std::size_t comma = rest.find(',');
    const Item item{rest.substr(0, comma), column};
    if (list.entries.size() == capacity && !rest.empty()) {
      problems.add(
          {rest, column},
          fmt::format("NVSHMEM keeps {} entries; this entry and all later ones are dropped",
                      capacity));
      break;
    }
    read_item(item, capacity, list, problems);
    if (comma == std::string_view::npos)
      break;
    column += comma + 1;
    rest.remove_prefix(comma + 1);
  }
  return list;
}

namespace {

/// NVSHMEM's arrays of devices and ports hold this many; it writes past them without a check.
constexpr std::size_t array_rows = 32;
/// The simulation stops here: a count is any int, and NVSHMEM would have crashed long before.
constexpr std::size_t simulated_rows = 1024;

enum class ListKind { none, hca_list, hca_pe_mapping };

/// The list that takes effect, and the matches of each entry so far.
struct ActiveList {
  ListKind kind = ListKind::none;
  HcaList list;
  std::vector<bool> matched;
  bool pe_mapping_ignored = false;
};

ActiveList active(ListKind kind, HcaList list) {
  const std::size_t entries = list.entries.size();
  return {kind, std::move(list), std::vector<bool>(entries, false), false};
}

/// HCA_LIST takes precedence if it names anything at all. An empty list filters nothing, but its
/// problems are still reported.
ActiveList choose_list(const NvshmemSettings& settings) {
  ActiveList chosen;
  if (settings.hca_list)
    chosen = active(ListKind::hca_list,
                    parse_hca_list(*settings.hca_list, hca_list_capacity(settings.version)));
  if (!settings.hca_pe_mapping)
    return chosen;
  if (!chosen.list.entries.empty() || ignores_hca_pe_mapping(settings.version)) {
    chosen.pe_mapping_ignored = true;
    return chosen;
  }
  return active(ListKind::hca_pe_mapping,
                parse_hca_list(*settings.hca_pe_mapping, hca_pe_mapping_capacity()));
}

/// The list's effect on one port: its number of rows, or why it has none.
struct Verdict {
  int replicas = 1;
  std::string refusal; ///< why the NIC must not be used; "" if it may be used
};

Verdict verdict_of(ActiveList& active_list, const std::string& device, int port) {
  if (active_list.list.entries.empty())
    return {};
  const bool is_mapping = active_list.kind == ListKind::hca_pe_mapping;
  const bool exclude = !is_mapping && active_list.list.exclude;
  const HcaListEntry* match = nullptr;
  for (std::size_t i = 0; i < active_list.list.entries.size(); ++i) {
    const HcaListEntry& entry = active_list.list.entries[i];
    if (entry.name != device || (entry.port != -1 && entry.port != port))
      continue;
    active_list.matched[i] = true;
    match = &entry; // the last one wins
  }
  const char* name = is_mapping ? "NVSHMEM_HCA_PE_MAPPING" : "NVSHMEM_HCA_LIST";
  if (exclude)
    return match == nullptr
               ? Verdict{}
               : Verdict{0, fmt::format("excluded by {} (\"{}\")", name, printable(match->text))};
  if (match == nullptr)
    return {0, fmt::format("not in {}", name)};
  if (is_mapping && match->count <= 0)
    return {0,
            fmt::format("{} gives it count {} ({})", name, match->count, printable(match->text))};
  return {is_mapping ? match->count : 1, ""};
}

/// Why IBGDA and IBDEVX skip a device before any list applies; "" if they do not.
std::string device_refusal(const HcaFacts& device, const NvshmemSettings& settings) {
  const bool filters = settings.transport == NvshmemTransport::ibgda ||
                       settings.transport == NvshmemTransport::ibdevx;
  if (!filters)
    return "";
  const char* transport = settings.transport == NvshmemTransport::ibgda ? "IBGDA" : "IBDEVX";
  if (!device.name.empty() && !accepts_name(settings, device.name)) {
    const std::string prefix = printable(effective_hca_prefix(settings), 80);
    if (!has_hca_prefix(settings.version))
      return fmt::format("{} takes only names that contain \"mlx5\"", transport);
    return fmt::format("{} takes only names that match NVSHMEM_HCA_PREFIX (\"{}\")", transport,
                       prefix);
  }
  if (!device.mlx5)
    return fmt::format("{} needs an mlx5 device", transport);
  return "";
}

std::string port_refusal(const HcaPortFacts& port, const NvshmemSettings& settings) {
  if (!port.active)
    return "port is not active";
  if (port.link_layer == LinkLayer::ethernet && !accepts_ethernet(settings.version))
    return "link layer is Ethernet, which NVSHMEM supports since 2.0";
  if (port.link_layer == LinkLayer::other)
    return "link layer is neither InfiniBand nor Ethernet";
  return "";
}

void add_rows(DeviceTable& table, int device, int port, int replicas) {
  for (int k = 0; k < replicas; ++k) {
    if (table.entries.size() == simulated_rows) {
      table.exclusions.push_back(
          {device, port,
           fmt::format("the table is full: NVSHMEM holds {} rows, and {} are simulated", array_rows,
                       simulated_rows)});
      return;
    }
    table.entries.push_back({device, port});
  }
}

void add_ports(DeviceTable& table, int index, const HcaFacts& device,
               const NvshmemSettings& settings, ActiveList& active_list) {
  for (const HcaPortFacts& port : device.ports) {
    const Verdict verdict = verdict_of(active_list, device.name, port.number);
    const std::string refusal =
        verdict.refusal.empty() ? port_refusal(port, settings) : verdict.refusal;
    if (refusal.empty())
      add_rows(table, index, port.number, verdict.replicas);
    else
      table.exclusions.push_back({index, port.number, refusal});
  }
}

/// libfabric lists every NIC name once; neither list applies.
DeviceTable libfabric_table(const std::vector<HcaFacts>& devices) {
  DeviceTable table;
  std::unordered_set<std::string> seen;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const int index = static_cast<int>(i);
    const int port = devices[i].ports.empty() ? 1 : devices[i].ports.front().number;
    if (devices[i].name.empty() || seen.insert(devices[i].name).second)
      add_rows(table, index, port, 1);
    else
      table.exclusions.push_back({index, 0, "libfabric lists each name once"});
  }
  return table;
}

/// A table without rows, for the same reason for each device.
DeviceTable empty_table(const std::vector<HcaFacts>& devices, const char* reason) {
  DeviceTable table;
  for (std::size_t i = 0; i < devices.size(); ++i)
    table.exclusions.push_back({static_cast<int>(i), 0, reason});
  return table;
}

/// The setting that chooses devices by name, if it may refer to a device whose name is unknown; ""
/// if the choice is certain, as when all names in the list are those of other devices.
std::string undecided_by_name(const std::vector<HcaFacts>& devices, const NvshmemSettings& settings,
                              const DeviceTable& table) {
  const auto has_name = [&devices](const std::string& name) {
    return std::any_of(devices.begin(), devices.end(),
                       [&name](const HcaFacts& device) { return device.name == name; });
  };
  if (!has_name(""))
    return "";
  const bool by_prefix = settings.transport == NvshmemTransport::ibgda ||
                         settings.transport == NvshmemTransport::ibdevx;
  const bool unmatched =
      std::any_of(table.unmatched.begin(), table.unmatched.end(),
                  [&](const HcaListEntry& entry) { return !has_name(entry.name); });
  const std::string variable = unmatched                          ? "NVSHMEM_" + table.list_name
                               : by_prefix && settings.hca_prefix ? "NVSHMEM_HCA_PREFIX"
                                                                  : "";
  return variable.empty() ? ""
                          : "the source has no device names, which " + variable + " selects by";
}

DeviceTable verbs_table(const std::vector<HcaFacts>& devices, const NvshmemSettings& settings) {
  DeviceTable table;
  ActiveList active_list = choose_list(settings);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string refusal = device_refusal(devices[i], settings);
    if (refusal.empty())
      add_ports(table, static_cast<int>(i), devices[i], settings, active_list);
    else
      table.exclusions.push_back({static_cast<int>(i), 0, refusal});
  }
  for (std::size_t i = 0; i < active_list.list.entries.size(); ++i)
    if (!active_list.matched[i])
      table.unmatched.push_back(active_list.list.entries[i]);
  if (!active_list.list.entries.empty())
    table.list_name = active_list.kind == ListKind::hca_list ? "HCA_LIST" : "HCA_PE_MAPPING";
  table.list = std::move(active_list.list);
  table.pe_mapping_ignored = active_list.pe_mapping_ignored;
  table.undecided = undecided_by_name(devices, settings, table);
  if (!table.undecided.empty())
    table.entries.clear();
  table.overruns = table.entries.size() > array_rows;
  return table;
}

} // namespace

DeviceTable build_device_table(const std::vector<HcaFacts>& devices,
                               const NvshmemSettings& settings) {
  switch (settings.transport) {
  case NvshmemTransport::none:
    return empty_table(devices, settings.unknown_transport.empty()
                                    ? "no remote transport is used"
                                    : "NVSHMEM does not know this remote transport");
  case NvshmemTransport::ucx:
    return empty_table(devices, "UCX selects its devices itself");
  case NvshmemTransport::libfabric:
    return libfabric_table(devices);
  case NvshmemTransport::ibrc:
  case NvshmemTransport::ibdevx:
  case NvshmemTransport::ibgda:
    break;
  }
  return verbs_table(devices, settings);
}

} // namespace shmemctl
