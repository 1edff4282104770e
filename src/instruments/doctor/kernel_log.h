// The kernel's log, and the messages in it that mean trouble.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/catalogue_file.h"
#include "src/base/finding.h"
#include "src/base/sysroot.h"
#include "src/instruments/doctor/doctor.h"
#include "src/model/topo/pci_address.h"

namespace shmemctl::doctor {

/// An entry of the catalogue (kernel_messages.conf describes its format).
struct KernelMessage {
  std::string id, check; ///< the check "xid" belongs to kernel-log-xid
  Severity severity = Severity::warning;
  std::string action;    ///< "none", "restart-app", "reset-gpu", "reboot", "replace", "investigate"
  std::size_t least = 1; ///< how often it must appear on one device
  LinePattern pattern;
  std::string meaning, fix, example;
  std::string source; ///< the text of the reference, not its name
};

/// Throws Error (usage) with the line and what was expected in it.
std::vector<KernelMessage> parse_kernel_messages(const std::string& text,
                                                 const std::string& subject);
/// The catalogue that is embedded in this binary.
std::string kernel_messages_text();
/// The messages of the catalogue, parsed once.
const std::vector<KernelMessage>& kernel_messages();

/// "restart the application" for "restart-app".
std::string action_words(const std::string& action);

/// One line of a log without the text before the message. `time` is as the log writes it, "" if the
/// line has none; seconds since boot as "12.345678".
struct KernelLine {
  std::string_view time, message;
};
/// A line of /dev/kmsg, of dmesg (with -T, -x, --time-format iso, or without times), of journalctl
/// -k, or of syslog. Empty if it is another program's.
std::optional<KernelLine> parse_kernel_line(std::string_view line);

/// The address of a PCI function in the message that is nearest to what was matched: the first
/// behind `begin`, or else the last one before it.
std::optional<PciAddress> address_in(std::string_view message, std::size_t begin);

/// All lines with the same message about the same subject.
struct KernelEvent {
  const KernelMessage* message = nullptr;
  std::optional<PciAddress> address;
  std::string detail; ///< what the pattern's {} is
  std::size_t count = 0;
  /// How many of them are before a start that cures such an event, and which start that was: "the
  /// GPU was reset", "the driver was loaded again", "the last boot".
  std::size_t cured = 0;
  std::string cure;
  std::string first, last; ///< times
  std::string line;        ///< the last message
};
struct KernelEvents {
  std::size_t lines = 0;           ///< how many lines are the kernel's
  std::vector<KernelEvent> events; ///< in the order of their first appearance; 1000 at most
};
/// The messages of one check's entries. A boot cures what came before it, except hardware that is
/// to be replaced; a load of the NVIDIA driver cures Xids and failures of the driver, except those
/// that need a reboot, and a reset of a GPU cures its own Xids, except those. Any bytes are safe.
KernelEvents find_kernel_events(std::string_view log, const std::vector<KernelMessage>& messages,
                                const std::string& check);

/// What a check says about these events.
CheckResult judge_kernel_events(const KernelEvents& found, const std::string& origin,
                                const Node& node);

/// The log, or why there is none: `problem` is "" if there is.
struct KernelLogRead {
  KernelLogText log;
  std::string problem, evidence, fix;
};
/// /dev/kmsg of the live machine, without waiting for further messages, or the kernel's buffer; of
/// a copied tree its /dev/kmsg or a file of /var/log. Never throws.
KernelLogRead read_kernel_log(const Sysroot& sysroot);

} // namespace shmemctl::doctor
