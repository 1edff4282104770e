#include "src/topo/nic_names.h"

#include <array>
#include <cctype>
#include <string_view>

#include "src/base/text.h"

namespace shmemctl {

namespace {

/// rdma_rename(8): a kind, then o (on board), s (slot), p (path) or x (GUID), then a number. A PCI
/// domain other than 0 puts P<domain> in front of p.
bool is_persistent_name(std::string_view name, std::string_view kind) {
  if (!starts_with(name, kind))
    return false;
  const std::string_view rest = name.substr(kind.size());
  return rest.size() >= 2 && std::string_view("ospxP").find(rest[0]) != std::string_view::npos &&
         std::isxdigit(static_cast<unsigned char>(rest[1])) != 0;
}

/// "mlx5_ib" followed by digits.
bool is_numbered(std::string_view name, std::string_view stem) {
  return starts_with(name, stem) && name.size() > stem.size() &&
         name.find_first_not_of("0123456789", stem.size()) == std::string_view::npos;
}

} // namespace

Fact<LinkLayer> link_layer_from_name(const std::string& name) {
  struct Stem {
    std::string_view text;
    LinkLayer layer;
  };
  static constexpr std::array<Stem, 3> persistent = {
      {{"ib", LinkLayer::infiniband}, {"roce", LinkLayer::ethernet}, {"iw", LinkLayer::ethernet}}};
  static constexpr std::array<Stem, 4> numbered = {{{"mlx5_ib", LinkLayer::infiniband},
                                                    {"mlx5_eth", LinkLayer::ethernet},
                                                    {"mlx5_an", LinkLayer::ethernet},
                                                    {"mlx5_bond_", LinkLayer::ethernet}}};
  const std::string origin = "derived from the name " + name;
  for (const Stem& stem : persistent)
    if (is_persistent_name(name, stem.text))
      return known(stem.layer, origin);
  for (const Stem& stem : numbered)
    if (is_numbered(name, stem.text))
      return known(stem.layer, origin);
  return unknown<LinkLayer>("the name " + name + " does not tell the link layer");
}

} // namespace shmemctl
