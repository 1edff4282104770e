#include "src/instruments/doctor/dcb.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <map>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/base/text.h"

namespace shmemctl::doctor {

namespace {

constexpr std::size_t priorities = 8;

template <class T>
std::optional<T> value_at(std::string_view bytes, std::size_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T))
    return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::size_t padded(std::size_t size_bytes) {
  return (size_bytes + 3) / 4 * 4;
}

/// Calls `visit` with the type and the content of each attribute; stops at an attribute that
/// exceeds the bytes.
template <class Visit>
void each_attribute(std::string_view bytes, Visit visit) {
  while (const auto header = value_at<nlattr>(bytes, 0)) {
    if (header->nla_len < sizeof(nlattr) || header->nla_len > bytes.size())
      return;
    visit(header->nla_type & NLA_TYPE_MASK,
          bytes.substr(sizeof(nlattr), header->nla_len - sizeof(nlattr)));
    bytes.remove_prefix(std::min(padded(header->nla_len), bytes.size()));
  }
}

std::array<std::uint8_t, priorities> copied(const std::uint8_t (&from)[priorities]) {
  std::array<std::uint8_t, priorities> to{};
  std::copy(std::begin(from), std::end(from), to.begin());
  return to;
}

/// The request for the settings of one interface.
std::string dcb_request(const std::string& interface) {
  std::string attribute = interface + '\0';
  nlattr attribute_header{};
  attribute_header.nla_len = static_cast<std::uint16_t>(sizeof attribute_header + attribute.size());
  attribute_header.nla_type = DCB_ATTR_IFNAME;
  attribute.resize(padded(attribute.size()));
  dcbmsg command{};
  command.dcb_family = AF_UNSPEC;
  command.cmd = DCB_CMD_IEEE_GET;
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + sizeof command +
                                                sizeof attribute_header + attribute.size());
  header.nlmsg_type = RTM_GETDCB;
  header.nlmsg_flags = NLM_F_REQUEST;
  header.nlmsg_seq = 1;
  std::string message;
  message.append(reinterpret_cast<const char*>(&header), sizeof header);
  message.append(reinterpret_cast<const char*>(&command), sizeof command);
  message.append(reinterpret_cast<const char*>(&attribute_header), sizeof attribute_header);
  return message + attribute;
}

} // namespace

std::optional<DcbSettings> parse_dcb_reply(std::string_view message) {
  const auto header = value_at<nlmsghdr>(message, 0);
  if (!header || header->nlmsg_len > message.size() ||
      header->nlmsg_len < sizeof(nlmsghdr) + sizeof(dcbmsg))
    return std::nullopt;
  const auto command = value_at<dcbmsg>(message, sizeof(nlmsghdr));
  const bool answers = (header->nlmsg_type == RTM_GETDCB || header->nlmsg_type == RTM_SETDCB) &&
                       command->cmd == DCB_CMD_IEEE_GET;
  if (!answers)
    return std::nullopt;
  constexpr std::size_t start = sizeof(nlmsghdr) + sizeof(dcbmsg);
  DcbSettings settings;
  each_attribute(
      message.substr(start, header->nlmsg_len - start), [&](int kind, std::string_view nested) {
        if (kind != DCB_ATTR_IEEE)
          return;
        each_attribute(nested, [&](int part, std::string_view content) {
          if (part == DCB_ATTR_IEEE_PFC) {
            // Older kernels send a shorter ieee_pfc without its last members; only its first
            // members are read.
            if (const auto enabled = value_at<std::uint8_t>(content, offsetof(ieee_pfc, pfc_en)))
              settings.lossless_priorities = *enabled;
          } else if (part == DCB_ATTR_IEEE_ETS) {
            if (const auto ets = value_at<ieee_ets>(content, 0))
              settings.classes = DcbSettings::Classes{copied(ets->tc_tsa), copied(ets->tc_tx_bw),
                                                      copied(ets->prio_tc)};
          }
        });
      });
  return settings;
}

std::optional<DcbSettings> read_dcb(const std::string& interface) {
  if (interface.empty() || interface.size() >= IFNAMSIZ)
    return std::nullopt;
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  timeval limit{};
  limit.tv_sec = 1;
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
    return std::nullopt;
  const std::string request = dcb_request(interface);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (::sendto(socket.get(), request.data(), request.size(), 0,
               reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0)
    return std::nullopt;
  std::string reply(16384, '\0');
  const ssize_t size = ::recv(socket.get(), reply.data(), reply.size(), 0);
  if (size <= 0)
    return std::nullopt;
  return parse_dcb_reply(std::string_view(reply).substr(0, static_cast<std::size_t>(size)));
}

std::string priorities_text(unsigned bits) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < priorities; ++i)
    if ((bits >> i & 1U) != 0)
      names.push_back(std::to_string(i));
  return names.empty() ? "none" : join(names, ", ");
}

std::string classes_text(const DcbSettings::Classes& classes) {
  std::map<unsigned, std::vector<std::string>> members;
  for (std::size_t i = 0; i < priorities; ++i)
    members[classes.of_priority[i]].push_back(std::to_string(i));
  std::vector<std::string> parts;
  for (const auto& each : members) {
    const std::size_t number = each.first;
    const std::string share = number >= priorities ? std::string("unknown")
                              : classes.algorithm[number] == IEEE_8021QAZ_TSA_STRICT
                                  ? std::string("strict")
                              : classes.algorithm[number] == IEEE_8021QAZ_TSA_ETS
                                  ? fmt::format("{} %", classes.share_percent[number])
                                  : fmt::format("algorithm {}", classes.algorithm[number]);
    parts.push_back(fmt::format("{}: {} for {}", number, share, join(each.second, " ")));
  }
  return join(parts, "; ");
}

} // namespace shmemctl::doctor
