#include "src/topo/readers/hwloc_dump.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/topo/distance.h"
#include "src/topo/limits.h"
#include "src/topo/node_records.h"
#include "src/topo/node_shape.h"
#include "src/topo/record.h"

namespace shmemctl {

namespace {

const char* const fix = "dump the node again with shmemctl topo --dump";

/// Where a record belongs: {2} or, below an owner, {2, 0}.
using Place = std::vector<int>;
/// A record is parsed when it is used: a million of them parsed at once would be gigabytes.
struct Found {
  Place place;
  const XmlElement* element = nullptr;
};
using Records = std::map<std::string, std::vector<Found>>;

Place parse_place(const std::string& text, const RecordReader& record) {
  Place place;
  for (const std::string& part : split(text, '.')) {
    const auto number = parse_integer(part);
    if (!number || *number < 0 || *number > 1'000'000 || place.size() == 3)
      record.fail("at");
    place.push_back(static_cast<int>(*number));
  }
  return place;
}

const std::string* record_name(const XmlElement& element) {
  if (element.name != "info")
    return nullptr;
  const std::string* name = element.find("name");
  return name != nullptr && starts_with(*name, hwloc_info_prefix) ? name : nullptr;
}

RecordReader parse(const XmlElement& element, const std::string& subject) {
  return RecordReader(element.get("value"), subject, element.position());
}

void collect(const XmlElement& element, const std::string& subject, Records& to) {
  if (const std::string* name = record_name(element)) {
    RecordReader fields = parse(element, subject);
    std::string at;
    fields("at", at);
    to[name->substr(std::strlen(hwloc_info_prefix))].push_back({parse_place(at, fields), &element});
  }
  for (const XmlElement& child : element.children)
    collect(child, subject, to);
}

class DumpReader {
public:
  DumpReader(Records records, std::string subject)
      : records_(std::move(records)), subject_(std::move(subject)) {}

  Node node() {
    Node node;
    for (const Found& found : records_["dump"]) {
      RecordReader fields = parse(*found.element, subject_);
      fields("hostname", node.hostname);
      fields("nvswitches", node.nvswitches);
      bool recorded = false;
      fields("recorded", recorded);
      if (recorded)
        node.recorded.emplace();
    }
    namespace records = node_records;
    list("package", node.packages, [](auto& to, auto& it) { records::package(to, it); });
    list("numa", node.numa_nodes, [](auto& to, auto& it) { records::numa(to, it); });
    list("host_bridge", node.host_bridges,
         [](auto& to, auto& it) { records::host_bridge(to, it); });
    list("pci", node.pci, [](auto& to, auto& it) { records::pci(to, it); });
    list("gpu", node.gpus, [](auto& to, auto& it) { records::gpu(to, it); });
    list("nic", node.nics, [](auto& to, auto& it) { records::nic(to, it); });
    list("note", node.notes, [](auto& to, auto& it) { to("text", it); });
    lists_below(node);
    rows(node);
    for (std::size_t i = 0; i < node.gpus.size(); ++i)
      node.gpus[i].index = static_cast<int>(i);
    return node;
  }

private:
  std::vector<Found>& sorted(const char* name) {
    std::vector<Found>& found = records_[name];
    std::stable_sort(found.begin(), found.end(),
                     [](const Found& a, const Found& b) { return a.place < b.place; });
    return found;
  }

  [[noreturn]] void fail(const Found& found, const char* field) const {
    parse(*found.element, subject_).fail(field);
  }

  /// Appends; the record's last number must be the next position.
  template <class T, class Read>
  void append(const Found& found, std::vector<T>& to, Read read) {
    if (static_cast<std::size_t>(found.place.back()) != to.size() ||
        to.size() >= static_cast<std::size_t>(topo_limits::max_pci_entries))
      fail(found, "at");
    RecordReader fields = parse(*found.element, subject_);
    read(fields, to.emplace_back());
  }

  template <class T, class Read>
  void list(const char* name, std::vector<T>& to, Read read) {
    for (const Found& found : sorted(name)) {
      expect_depth(found, 1);
      append(found, to, read);
    }
  }

  void expect_depth(const Found& found, std::size_t depth) const {
    if (found.place.size() != depth)
      fail(found, "at");
  }

  template <class T>
  T& owner(const Found& found, std::vector<T>& owners, std::size_t level) const {
    const auto index = static_cast<std::size_t>(found.place[level]);
    if (index >= owners.size())
      fail(found, "at");
    return owners[index];
  }

  void lists_below(Node& node) {
    for (const Found& found : sorted("gpu_link")) {
      expect_depth(found, 2);
      append(found, owner(found, node.gpus, 0).links,
             [](auto& to, auto& it) { node_records::gpu_link(to, it); });
    }
    for (const Found& found : sorted("nic_port")) {
      expect_depth(found, 2);
      append(found, owner(found, node.nics, 0).ports,
             [](auto& to, auto& it) { node_records::nic_port(to, it); });
    }
    for (const Found& found : sorted("gid")) {
      expect_depth(found, 3);
      append(found, owner(found, owner(found, node.nics, 0).ports, 1).gids,
             [](auto& to, auto& it) { node_records::gid(to, it); });
    }
  }

  void rows(Node& node) {
    for (const Found& found : sorted("row")) {
      expect_depth(found, 1);
      if (!node.recorded || node.recorded->size() >= topo_limits::max_devices)
        fail(found, "at");
      append(found, *node.recorded, [](RecordReader& to, std::vector<Distance>& row) {
        std::string cells;
        to("cells", cells);
        // Two characters a cell at least: one that is longer than the limit needs no look.
        if (cells.size() > std::size_t{topo_limits::max_devices} * 1000)
          to.fail("cells");
        for (const std::string& cell : split_blanks(cells))
          row.push_back(parse_cell(cell, to));
      });
    }
  }

  static Distance parse_cell(const std::string& cell, const RecordReader& record) {
    Distance distance;
    if (!cell.empty() && cell.front() == '?') {
      const auto reason = record_value::percent_decode(cell.substr(1));
      if (!reason)
        record.fail("cells");
      distance.reason = *reason;
      return distance;
    }
    const std::optional<Distance> known = parse_distance(cell);
    if (!known)
      record.fail("cells");
    return *known;
  }

  Records records_;
  std::string subject_;
};

} // namespace

bool is_hwloc_dump(const XmlElement& topology) {
  for (const XmlElement& object : topology.children)
    for (const XmlElement& child : object.children)
      if (const std::string* name = record_name(child))
        if (*name == std::string(hwloc_info_prefix) + "dump")
          return true;
  return false;
}

Node read_hwloc_dump(const XmlElement& topology, const std::string& subject) {
  Records records;
  collect(topology, subject, records);
  Node node = DumpReader(std::move(records), subject).node();
  if (const std::string problem = shape_problem(node); !problem.empty())
    throw input_error(subject, topology.position(), problem, fix);
  return node;
}

} // namespace shmemctl
