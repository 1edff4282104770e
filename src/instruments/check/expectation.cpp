// What a node of one type must have: recorded on a good node, and compared with every other node.
#include "src/instruments/check/expectation.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fnmatch.h>
#include <nlohmann/json.hpp>
#include <set>

#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/json_values.h"
#include "src/base/text.h"
#include "src/model/topo/advice/wording.h"
#include "src/model/topo/inventory.h"

namespace shmemctl {

namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

constexpr int format_version = 1;
constexpr const char* record_anew = "record the file anew on a good node: shmemctl check "
                                    "--record-expect FILE";

/// A pattern that matches only this text.
std::string literal(const std::string& text) {
  std::string pattern;
  for (const char letter : text)
    pattern += (std::string_view("*?[\\").find(letter) != std::string_view::npos ? "\\" : "") +
               std::string(1, letter);
  return pattern;
}

/// Omits unknown values: an empty text, or the 0 that virtual machines report for a link.
template <class T>
void put(Json& object, const char* key, const Fact<T>& fact) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (fact && !(*fact).empty())
      object[key] = literal(*fact);
  } else if (fact && *fact > 0) {
    object[key] = *fact;
  }
}

Json recorded_gpu(const InventoryDevice& gpu) {
  Json object = Json::object();
  if (gpu.pci)
    object["pci"] = *gpu.pci;
  else
    object["count"] = 1;
  put(object, "pci_id", gpu.pci_id);
  put(object, "model", gpu.model);
  put(object, "vbios", gpu.vbios);
  put(object, "pcie_width", gpu.link.width);
  if (gpu.reports_links)
    object["nvlinks"] = *gpu.nvlinks;
  return object;
}

Json recorded_nic(const InventoryDevice& nic) {
  Json object = Json::object();
  put(object, "name", nic.name);
  if (nic.pci)
    object["pci"] = *nic.pci;
  if (object.empty())
    object["count"] = 1;
  put(object, "pci_id", nic.pci_id);
  put(object, "firmware", nic.firmware);
  put(object, "pcie_width", nic.link.width);
  put(object, "pcie_speed_GTps", nic.link.speed_GTps);
  for (const NicPort& port : nic.ports) {
    if (port.state && *port.state != PortState::active)
      continue;
    Json one = {{"port", port.number}};
    if (port.link_layer)
      one["link_layer"] = to_string(*port.link_layer);
    put(one, "rate_Gbps", port.rate_Gbps);
    object["ports"].push_back(one);
  }
  return object;
}

} // namespace

std::string record_expectation(const Node& node, const json& host) {
  Json document = {{"expectation", format_version}, {"gpus", Json::array()}};
  for (const InventoryDevice& gpu : gpu_inventory(node))
    document["gpus"].push_back(recorded_gpu(gpu));
  if (node.nvswitches > 0)
    document["nvswitches"] = node.nvswitches;
  document["nics"] = Json::array();
  for (const InventoryDevice& nic : nic_inventory(node))
    document["nics"].push_back(recorded_nic(nic));
  document["versions"] = Json::object();
  for (const auto& [name, version] : versions_of(host))
    document["versions"][name] = literal(version);
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

/// Reads one object of the file. Rejects unknown keys, so that a misspelled key is not simply
/// ignored.
class Members {
public:
  Members(const json& object, std::string place, const std::string& file)
      : object_(object), place_(std::move(place)), file_(file) {
    if (!object.is_object())
      complain(place_, "expected an object in braces");
  }

  /// @throws Error for the first key that has not been requested.
  void finish() const {
    for (const auto& [key, value] : object_.items())
      if (!asked_.contains(key))
        complain(place_of(key),
                 "no such key: " + did_you_mean(key, {asked_.begin(), asked_.end()}) +
                     "known here are " + join({asked_.begin(), asked_.end()}, ", "));
  }

  const json* find(const char* key) {
    asked_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() ? nullptr : &*found;
  }

  std::optional<std::string> text(const char* key) {
    const json* value = find(key);
    if (value == nullptr)
      return std::nullopt;
    if (!value->is_string() || value->get_ref<const std::string&>().empty())
      complain(place_of(key), "expected a string");
    return value->get<std::string>();
  }

  std::optional<int> integer(const char* key, int least) {
    const json* value = find(key);
    if (value == nullptr)
      return std::nullopt;
    const std::optional<int> number = whole_number<int>(*value);
    if (!number || *number < least)
      complain(place_of(key), fmt::format("expected an integer, {} or more", least));
    return number;
  }

  std::optional<double> positive(const char* key) {
    const json* value = find(key);
    if (value == nullptr)
      return std::nullopt;
    if (!value->is_number() || !(value->get<double>() > 0))
      complain(place_of(key), "expected a number above 0");
    return value->get<double>();
  }

  /// Calls take(item, place) for each item of a list.
  template <class Take>
  void items(const char* key, Take&& take) {
    const json* value = find(key);
    if (value == nullptr)
      return;
    if (!value->is_array())
      complain(place_of(key), "expected a list in brackets");
    for (std::size_t i = 0; i < value->size(); ++i)
      take((*value)[i], place_of(key) + "[" + std::to_string(i) + "]");
  }

  std::string place_of(const std::string& key) const {
    return (place_.empty() ? "" : place_ + ".") + printable(key, 40);
  }

  [[noreturn]] void complain(const std::string& place, const std::string& problem) const {
    throw input_error(file_, place, problem, std::string("correct it, or ") + record_anew);
  }

private:
  const json& object_;
  std::string place_;
  const std::string& file_;
  std::set<std::string> asked_;
};

ExpectedPort port_from(const json& value, const std::string& place, const std::string& file) {
  Members members(value, place, file);
  ExpectedPort port;
  port.number = members.integer("port", 1).value_or(1);
  port.link_layer = members.text("link_layer");
  port.rate_Gbps = members.positive("rate_Gbps");
  members.finish();
  return port;
}

ExpectedDevice device_from(const json& value, const std::string& place, const std::string& file,
                           bool is_nic) {
  Members members(value, place, file);
  ExpectedDevice device;
  if (const std::optional<std::string> pci = members.text("pci")) {
    const std::optional<PciAddress> address = parse_pci_address(*pci);
    if (!address)
      members.complain(members.place_of("pci"), "expected a PCI address such as 0000:18:00.0");
    device.pci = to_string(*address);
  }
  device.pci_id = members.text("pci_id");
  device.pcie_width = members.integer("pcie_width", 1);
  if (is_nic) {
    device.name = members.text("name");
    device.firmware = members.text("firmware");
    device.pcie_speed_GTps = members.positive("pcie_speed_GTps");
    members.items("ports", [&](const json& port, const std::string& at) {
      device.ports.push_back(port_from(port, at, file));
    });
  } else {
    device.model = members.text("model");
    device.vbios = members.text("vbios");
    device.nvlinks = members.integer("nvlinks", 0);
  }
  const std::optional<int> count = members.integer("count", 1);
  if (count && *count != 1 && device.is_named())
    members.complain(members.place_of("count"),
                     "must be 1: the entry names one device by its pci or name");
  device.count = count.value_or(1);
  members.finish();
  return device;
}

} // namespace

Expectation parse_expectation(const std::string& text, const std::string& file) {
  const json document = parse_json(text, file);
  Members members(document, "", file);
  const std::optional<int> version = members.integer("expectation", 1);
  if (!version)
    members.complain(
        "", "not an expectation: it has no key \"expectation\", the version of its format");
  if (*version > format_version)
    throw input_error(file, "expectation",
                      fmt::format("format {} is too new: this shmemctl reads formats up to {}",
                                  *version, format_version),
                      std::string("use a newer shmemctl, or ") + record_anew);
  Expectation expectation;
  for (const bool is_nic : {false, true}) {
    const char* const key = is_nic ? "nics" : "gpus";
    if (members.find(key) == nullptr)
      continue;
    std::vector<ExpectedDevice>& devices = (is_nic ? expectation.nics : expectation.gpus).emplace();
    members.items(key, [&](const json& value, const std::string& place) {
      devices.push_back(device_from(value, place, file, is_nic));
    });
  }
  expectation.nvswitches = members.integer("nvswitches", 0);
  if (const json* versions = members.find("versions")) {
    if (!versions->is_object())
      members.complain("versions", "expected an object in braces");
    Members each(*versions, "versions", file);
    for (const auto& [name, value] : versions->items())
      expectation.versions[name] = *each.text(name.c_str());
  }
  members.finish();
  return expectation;
}

namespace {

bool fits(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

std::string reason_of(const std::string& origin) {
  return origin.empty() ? "" : " (" + printable(origin, 80) + ")";
}

/// Collects differences, and the fix of the first one.
class Differences {
public:
  void text(const char* what, const std::optional<std::string>& pattern,
            const Fact<std::string>& fact, const std::string& fix) {
    if (!pattern || (fact && fits(*pattern, *fact)))
      return;
    add(fact ? fmt::format("{} is {}, expected {}", what, printable(*fact, 80),
                           printable(*pattern, 80))
             : fmt::format("{} is unknown{}, expected {}", what, reason_of(fact.origin),
                           printable(*pattern, 80)),
        fix);
  }

  template <class T>
  void number(const std::string& what, const std::optional<T>& expected, const Fact<T>& fact,
              const char* unit, const std::string& fix) {
    constexpr double rounding = 1e-9;
    if (!expected ||
        (fact && std::abs(static_cast<double>(*fact) - static_cast<double>(*expected)) <=
                     rounding * static_cast<double>(*expected)))
      return;
    add(fact ? fmt::format("{} is {}{}, expected {}{}", what, *fact, unit, *expected, unit)
             : fmt::format("{} is unknown{}, expected {}{}", what, reason_of(fact.origin),
                           *expected, unit),
        fix);
  }

  void add(std::string words, const std::string& fix) {
    words_.push_back(std::move(words));
    fix_ = fix_.empty() ? fix : fix_;
  }

  const std::vector<std::string>& words() const { return words_; }
  const std::string& fix() const { return fix_; }

private:
  std::vector<std::string> words_;
  std::string fix_;
};

/// The port's number on the card, by which mlxconfig names it: each port of a card is a PCI
/// function of its own, with a port 1, unless one device has them all.
int port_of_card(const ExpectedPort& port, const InventoryDevice& found) {
  const std::string address = found.pci.value.value_or("");
  const bool second = found.ports.size() < 2 && address.ends_with(".1");
  return second ? 2 : port.number;
}

void compare_port(const ExpectedPort& expected, const InventoryDevice& found,
                  Differences& differences) {
  const auto port = std::find_if(found.ports.begin(), found.ports.end(), [&](const NicPort& each) {
    return each.number == expected.number;
  });
  const std::string name = fmt::format("port {}", expected.number);
  if (port == found.ports.end()) {
    differences.add(name + " is missing", record_anew);
    return;
  }
  const std::string cable =
      fmt::format("check the cable and the switch's port of {}/{}: ibstat {} {}, or ethtool for "
                  "Ethernet",
                  found.subject, expected.number, found.subject, expected.number);
  if (port->state && *port->state != PortState::active) {
    differences.add(fmt::format("{} is {}, expected ACTIVE", name, to_string(*port->state)), cable);
    return;
  }
  differences.text((name + "'s link layer").c_str(), expected.link_layer,
                   port->link_layer ? known(std::string(to_string(*port->link_layer)), "")
                                    : unknown<std::string>(port->link_layer.origin),
                   fmt::format("set the port's type: mlxconfig -d {} set LINK_TYPE_P{}=1 "
                               "(InfiniBand) or 2 (Ethernet)",
                               found.pci.value.value_or(found.subject),
                               port_of_card(expected, found)));
  differences.number(name + "'s rate", expected.rate_Gbps, port->rate_Gbps, " Gb/s", cable);
}

Differences differences_of(const ExpectedDevice& expected, const InventoryDevice& found) {
  Differences differences;
  const std::string at = found.pci.value.value_or("ADDRESS");
  differences.text("the PCI address", expected.pci, found.pci,
                   "compare the slots with those of a good node: lspci -tv");
  differences.text("the PCI id", expected.pci_id, found.pci_id,
                   "check which model is in this slot: lspci -nn -s " + at);
  differences.text("the model", expected.model, found.model,
                   "check which model is in this slot, and whether its driver runs: nvidia-smi -L");
  const std::string reseat = "reseat the device or its riser, then compare: lspci -vvs " + at +
                             " | grep -E 'LnkCap|LnkSta'";
  differences.number("the PCIe width", expected.pcie_width, found.link.width, " lanes", reseat);
  differences.number("the PCIe speed", expected.pcie_speed_GTps, found.link.speed_GTps, " GT/s",
                     reseat);
  differences.number(
      "the number of NVLinks", expected.nvlinks,
      found.nvlinks ? known(*found.nvlinks, "") : unknown<int>("not read"), "",
      "look for links that are down: nvidia-smi nvlink -s, and Xid messages in dmesg");
  differences.text("the firmware", expected.firmware, found.firmware,
                   "install that firmware: mlxfwmanager -d " + at +
                       " --query, then -u; or the vendor's tool");
  differences.text(
      "the VBIOS", expected.vbios, found.vbios,
      "install that VBIOS with the server vendor's update, then compare: nvidia-smi -q "
      "| grep VBIOS");
  for (const ExpectedPort& port : expected.ports)
    compare_port(port, found, differences);
  return differences;
}

/// The devices of one kind. Each is matched with at most one expected device.
class Inventory {
public:
  Inventory(std::vector<InventoryDevice> found, const char* kind, Findings& findings)
      : found_(std::move(found)), taken_(found_.size(), false), kind_(kind), findings_(findings) {}

  void compare(const std::vector<ExpectedDevice>& expected) {
    for (const ExpectedDevice& device : expected)
      if (device.is_named())
        compare_named(device);
    // Devices that match are taken first, so that a device that differs is reported alone.
    std::vector<int> lacking;
    for (const ExpectedDevice& device : expected)
      lacking.push_back(device.is_named() ? 0 : device.count - take_fitting(device));
    for (std::size_t i = 0; i < expected.size(); ++i)
      compare_rest(expected[i], lacking[i]);
    report_extra();
  }

private:
  void compare_named(const ExpectedDevice& device) {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const Fact<std::string>& by = device.name ? found_[i].name : found_[i].pci;
      if (taken_[i] || !by || !fits(device.name ? *device.name : *device.pci, *by))
        continue;
      taken_[i] = true;
      report_differences(device, found_[i]);
      return;
    }
    const std::string where = device.pci ? " at " + printable(*device.pci) : "";
    const std::string subject =
        device.name ? printable(*device.name, 64) : std::string(kind_) + where;
    findings_.push_back({"expected-missing", Severity::error, subject,
                         device.name ? subject + where + " is missing" : subject + " is missing",
                         missing_fix(device.pci)});
  }

  std::string missing_fix(const std::optional<std::string>& pci) const {
    const std::string look = pci ? "lspci -s " + printable(*pci) : "lspci -nn";
    return std::string(kind_) == "GPU"
               ? look + "; if the device is not listed, look for Xid 79 in dmesg and power-cycle "
                        "the node; if it is, load its driver: modprobe nvidia"
               : look + "; if the device is not listed, reseat it and power-cycle the node; if it "
                        "is, load its driver: modprobe mlx5_ib";
  }

  int take_fitting(const ExpectedDevice& device) {
    int count = 0;
    for (std::size_t i = 0; i < found_.size() && count < device.count; ++i)
      if (!taken_[i] && differences_of(device, found_[i]).words().empty()) {
        taken_[i] = true;
        ++count;
      }
    return count;
  }

  /// Reports remaining devices as differing from the expected ones; if there are too few, the rest
  /// is missing.
  void compare_rest(const ExpectedDevice& device, int lacking) {
    for (std::size_t i = 0; i < found_.size() && lacking > 0; ++i)
      if (!taken_[i]) {
        taken_[i] = true;
        --lacking;
        report_differences(device, found_[i]);
      }
    if (lacking > 0)
      findings_.push_back({"expected-missing", Severity::error,
                           fmt::format("{} {}{}", lacking, kind_, lacking == 1 ? "" : "s"),
                           fmt::format("{} of {} {}s{} missing", lacking, device.count, kind_,
                                       lacking == 1 ? " is" : " are"),
                           missing_fix(std::nullopt)});
  }

  void report_differences(const ExpectedDevice& device, const InventoryDevice& found) {
    const Differences differences = differences_of(device, found);
    if (!differences.words().empty())
      findings_.push_back({"expected-differs", Severity::error, found.subject,
                           found.subject + ": " + join(differences.words(), "; "),
                           differences.fix()});
  }

  void report_extra() {
    std::vector<std::string> extra;
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (!taken_[i])
        extra.push_back(found_[i].subject);
    if (!extra.empty())
      findings_.push_back(
          {"expected-extra", Severity::warning, join(extra, ", "),
           join(extra, ", ") + (extra.size() == 1 ? " is" : " are") + " present, but not expected",
           "remove the device, or " + std::string(record_anew)});
  }

  std::vector<InventoryDevice> found_;
  std::vector<bool> taken_;
  const char* kind_;
  Findings& findings_;
};

} // namespace

Findings compare_with_expectation(const Expectation& expectation, const Node& node,
                                  const json& host) {
  Findings findings;
  if (expectation.gpus)
    Inventory(gpu_inventory(node), "GPU", findings).compare(*expectation.gpus);
  if (expectation.nics)
    Inventory(nic_inventory(node), "NIC", findings).compare(*expectation.nics);
  if (expectation.nvswitches && *expectation.nvswitches != node.nvswitches)
    findings.push_back(
        {"expected-differs", Severity::error, "NVSwitches",
         fmt::format("NVSwitches: {} found, expected {}", node.nvswitches, *expectation.nvswitches),
         "compare lspci -d 10de: -nn with a good node"});
  const std::map<std::string, std::string> versions = versions_of(host);
  for (const auto& [name, pattern] : expectation.versions) {
    Differences differences;
    const auto found = versions.find(name);
    differences.text(
        "version", pattern,
        found != versions.end() ? known(found->second, "")
                                : unknown<std::string>("not loaded, or without a version"),
        name == "cuda" ? fmt::format("install a driver that serves CUDA {}, or change the file: "
                                     "nvidia-smi shows both versions",
                                     printable(pattern, 80))
                       : fmt::format("install {} {} as on a good node, or change the file",
                                     printable(name, 40), printable(pattern, 80)));
    for (const std::string& words : differences.words())
      findings.push_back({"expected-differs", Severity::error, printable(name, 40),
                          printable(name, 40) + ": " + words, differences.fix()});
  }
  sort_findings(findings);
  return findings;
}

} // namespace shmemctl
