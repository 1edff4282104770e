// Checks the prerequisites of NCCL's GPU-initiated networking (GIN) on a node, over mlx5 devices
// and over EFA.
//
// Sources: NCCL's release notes and documentation of its device API; aws-ofi-nccl's
// doc/gin-getting-started.md and issue 1369.
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/libraries.h"
#include "src/instruments/doctor/support.h"
#include "src/instruments/libraries/versions.h"

namespace shmemctl::doctor {

namespace {

using Release = std::array<int, 3>;

/// The prerequisites that are fulfilled, those of which that is unknown, and the missing ones with
/// their fixes.
class Prerequisites {
public:
  void have(std::string evidence) { have_.push_back(std::move(evidence)); }
  void lack(std::string what, std::string fix) {
    if (lack_.empty())
      fix_ = std::move(fix);
    lack_.push_back(std::move(what));
  }
  void unknown(std::string what) { unknown_.push_back(std::move(what)); }
  void need(bool there, std::string evidence, std::string fix) {
    if (there)
      have(std::move(evidence));
    else
      lack(std::move(evidence), std::move(fix));
  }

  /// @param title   "GPU-initiated EFA"
  /// @param request the setting that requests the feature: "NCCL_GIN_TYPE=5"; "" if there is none
  /// @param advice  how to request the feature
  CheckResult judge(const std::string& title, const std::string& request,
                    const std::string& advice) const {
    std::vector<std::string> parts = have_;
    if (!lack_.empty())
      parts.push_back("not fulfilled: " + join(lack_, "; "));
    if (!unknown_.empty())
      parts.push_back("unknown: " + join(unknown_, "; "));
    const std::string evidence = join(parts, "; ");
    if (lack_.empty() && !unknown_.empty())
      return skipped("it is unknown whether " + title + " is possible here" +
                         (request.empty() ? "" : ", for which " + request + " asks") + ": " +
                         name_list(unknown_),
                     evidence);
    if (lack_.empty())
      return passed(title + " has all that it needs" +
                        (request.empty() ? "; " + advice : ", and " + request + " asks for it"),
                    evidence);
    const std::string missing = name_list(lack_);
    if (request.empty())
      return skipped(title + " is not possible here, and not asked for; not fulfilled: " + missing,
                     evidence, fix_);
    return failed(request + " asks for " + title +
                      ", which is not possible here; not fulfilled: " + missing,
                  evidence, fix_);
  }

private:
  std::vector<std::string> have_, lack_, unknown_;
  std::string fix_;
};

std::string setting(const CheckContext& context, const char* name) {
  const auto found = context.environment.find(name);
  return found == context.environment.end() ? "" : found->second;
}

bool has_device_of(const Node& node, std::string_view driver) {
  return std::any_of(node.nics.begin(), node.nics.end(), [driver](const Nic& nic) {
    return starts_with(nic.driver.value.value_or(""), driver);
  });
}

std::string release_text(const std::string& what, const std::string& version) {
  return what + (version.empty() ? " of unknown version" : " " + printable(version, 40));
}

/// Whether a version is at least `least`; false if it is unknown.
bool at_least(const std::string& version, const Release& least) {
  const auto release = libraries::release_of(version);
  return release && *release >= least;
}

/// Requires a release of what is installed. @param note behind its name and version
void need_release(const std::string& what, const std::string& version, const Release& least,
                  const std::string& note, const std::string& fix, Prerequisites& all) {
  const std::string text = release_text(what, version) + note;
  if (libraries::release_of(version))
    all.need(at_least(version, least), text, fix);
  else
    all.unknown(text);
}

/// The first file of a kind of library that the loader finds.
std::shared_ptr<const libraries::Library> first_of_kind(const CheckContext& context,
                                                        libraries::LibraryReader& reader,
                                                        std::string_view kind) {
  for (const auto& entry : loader_order(context.sysroot, context.environment)) {
    const libraries::LibraryKind* const own = libraries::library_kind(entry.first);
    if (own != nullptr && kind == own->id)
      return reader.installed(entry.second.front().path);
  }
  return nullptr;
}

void need_efa_driver(const CheckContext& context, Prerequisites& all) {
  const std::string path = "/sys/module/efa/version";
  const std::string version = context.sysroot.read_line(path).value_or("");
  all.need(at_least(version, {3, 3, 0}),
           version.empty() ? "the efa driver reports no version: it is the kernel's own"
                           : file_evidence(path, version) + " (3.3.0 has completion counters)",
           "install EFA installer 1.50 or newer, then modprobe -r efa && modprobe efa");
}

void need_peer_mapping(const CheckContext& context, Prerequisites& all) {
  const CheckResult mapping = peer_mapping_override(context);
  if (mapping.status == CheckStatus::skipped)
    all.unknown(mapping.reason);
  else
    all.need(mapping.status == CheckStatus::pass, mapping.reason, mapping.fix);
}

void need_gdrcopy(const CheckContext& context, Prerequisites& all) {
  constexpr Release least = {2, 5, 0};
  const std::string fix =
      install_command(context.sysroot, "gdrdrv-dkms libgdrapi", "gdrcopy gdrcopy-kmod") +
      "  # 2.5 or newer";
  const std::string path = "/sys/module/gdrdrv/version";
  const std::string module = context.sysroot.read_line(path).value_or("");
  all.need(at_least(module, least),
           module.empty() ? absent("/sys/module/gdrdrv") : file_evidence(path, module), fix);
  const auto library = find_library(context.sysroot, {"libgdrapi.so.2"});
  if (library)
    need_release("libgdrapi", version_in_file_name(library->file).value_or(""), least, "", fix,
                 all);
  else
    all.lack("libgdrapi.so.2: in no library folder", fix);
}

void need_efa_libraries(const CheckContext& context, Prerequisites& all) {
  const std::string fix = "install EFA installer 1.50 or newer";
  const std::string symbol = "efadv_create_comp_cntr";
  if (const auto library = find_library(context.sysroot, {"libefa.so.1"}))
    all.need(libraries::has_text(context.sysroot, library->file, symbol),
             printable(library->path) + ": the symbol " + symbol, fix);
  else
    all.lack("libefa.so.1: in no library folder", fix);
  libraries::LibraryReader reader(context.sysroot);
  if (const auto fabric = first_of_kind(context, reader, "libfabric"))
    need_release(printable(fabric->file.path), fabric->version, {2, 6, 0}, " (2.6 is needed)", fix,
                 all);
  else
    all.lack("libfabric.so.1: in no library folder", fix);
  const auto plugin = first_of_kind(context, reader, "nccl-net");
  if (!plugin)
    all.lack("no NCCL plugin (libnccl-net*.so) in the library folders", fix);
  else
    all.need(plugin->names.find("ncclGinPlugin_v") != std::string::npos,
             printable(plugin->file.path) + ": the symbol ncclGinPlugin_v*", fix);
}

/// The NCCL library of the Python environment or, if it has none, the one that the loader finds.
std::shared_ptr<const libraries::Library> nccl_here(const CheckContext& context,
                                                    libraries::LibraryReader& reader) {
  for (const std::string& folder : chosen_site_folders(context)) {
    const std::string path = folder + "/nvidia/nccl/lib/libnccl.so.2";
    if (context.sysroot.exists(path))
      return reader.installed(path);
  }
  return first_of_kind(context, reader, "nccl");
}

void need_rdma_core(const CheckContext& context, libraries::LibraryReader& reader,
                    Prerequisites& all) {
  const std::string fix =
      install_command(context.sysroot, "libibverbs1 ibverbs-providers", "libibverbs") +
      "  # rdma-core 44 or newer";
  const auto verbs = find_library(context.sysroot, {"libibverbs.so.1"});
  const std::string name = verbs ? version_in_file_name(verbs->file).value_or("") : "";
  const std::vector<int> numbers = version_numbers(name); // 1.14.44.0 belongs to rdma-core 44
  if (!verbs)
    all.lack("libibverbs.so.1: in no library folder", fix);
  else if (numbers.size() == 4)
    all.need(numbers[2] >= 44, fmt::format("rdma-core {} (44 is needed)", numbers[2]), fix);
  const auto library = find_library(context.sysroot, {"libmlx5.so.1"});
  const auto direct = library ? reader.installed(library->path) : nullptr;
  if (!direct) {
    all.lack("libmlx5.so.1: in no library folder", fix);
    return;
  }
  if (direct->elf.defined_versions.empty())
    return; // it is unknown whether libmlx5 is new enough
  const bool new_enough = std::any_of(
      direct->elf.defined_versions.begin(), direct->elf.defined_versions.end(),
      [](const std::string& version) {
        constexpr std::string_view prefix = "MLX5_";
        return starts_with(version, prefix) && at_least(version.substr(prefix.size()), {1, 25, 0});
      });
  all.need(new_enough, printable(library->path) + ": the symbol version MLX5_1.25",
           install_command(context.sysroot, "ibverbs-providers", "libibverbs") +
               "  # the newest rdma-core");
}

void need_gpu_memory(const CheckContext& context, Prerequisites& all) {
  const CheckResult peermem = nvidia_peermem(context), buffer = dma_buf(context);
  if (peermem.status == CheckStatus::pass)
    return all.have(peermem.reason);
  const auto kernel = kernel_version(context.sysroot);
  constexpr std::array<int, 2> least = {6, 1};
  if (buffer.status == CheckStatus::pass && !kernel)
    return all.unknown("the kernel's release: GPU memory by dma-buf needs Linux 6.1");
  const bool recent = kernel && kernel->number() >= least;
  all.need(buffer.status == CheckStatus::pass && recent,
           "GPU memory by dma-buf on Linux 6.1 or newer, or by nvidia_peermem",
           "modprobe nvidia-peermem && echo nvidia-peermem > "
           "/etc/modules-load.d/nvidia-peermem.conf");
}

/// The ports of a card with several in the compute fabric: NCCL merges them into one device.
std::optional<std::string> fused_ports(const CheckContext& context) {
  std::map<std::pair<int, int>, std::vector<std::string>> cards; // domain and bus
  for (const RdmaPort& at : fabric_rdma_ports(context))
    if (at.nic->pci >= 0) {
      const PciAddress& address = context.node.pci[static_cast<std::size_t>(at.nic->pci)].address;
      cards[{static_cast<int>(address.domain), static_cast<int>(address.bus)}].push_back(at.name());
    }
  for (const auto& card : cards)
    if (card.second.size() > 1)
      return name_list(card.second);
  return std::nullopt;
}

} // namespace

CheckResult efa_gda(const CheckContext& context) {
  if (const auto reason = no_nvidia_gpu(context.node))
    return skipped(*reason);
  if (!has_device_of(context.node, "efa"))
    return skipped("no EFA device on this node");
  if (library_folders(context.sysroot).empty())
    return skipped("the copied tree has no library folders", absent("/usr/lib"));
  Prerequisites all;
  need_efa_driver(context, all);
  need_peer_mapping(context, all);
  need_gdrcopy(context, all);
  need_efa_libraries(context, all);
  const std::string type = setting(context, "NCCL_GIN_TYPE");
  return all.judge("GPU-initiated EFA", type == "5" ? "NCCL_GIN_TYPE=5" : "",
                   "without NCCL_GIN_TYPE=5 a CPU thread does the transfers");
}

CheckResult nccl_gin(const CheckContext& context) {
  if (const auto reason = no_gpu_or_rdma(context.node))
    return skipped(*reason);
  if (!has_device_of(context.node, "mlx5"))
    return skipped("no mlx5 device on this node");
  if (library_folders(context.sysroot).empty())
    return skipped("the copied tree has no library folders", absent("/usr/lib"));
  Prerequisites all;
  libraries::LibraryReader reader(context.sysroot);
  need_rdma_core(context, reader, all);
  need_gpu_memory(context, all);
  if (const auto nccl = nccl_here(context, reader)) {
    need_release(printable(nccl->file.path), nccl->version, {2, 28, 0}, " (2.28 has GIN)",
                 "install NCCL 2.28 or newer", all);
    const auto fused = fused_ports(context);
    if (fused && setting(context, "NCCL_IB_MERGE_NICS") != "0" &&
        libraries::release_of(nccl->version) && !at_least(nccl->version, {2, 30, 7}))
      all.lack("NCCL joins the ports " + *fused +
                   " to one device, for which it has GIN since 2.30.7",
               "export NCCL_IB_MERGE_NICS=0");
  }
  std::string request;
  if (const std::string type = setting(context, "NCCL_GIN_TYPE"); type == "2" || type == "3")
    request = "NCCL_GIN_TYPE=" + type;
  else if (setting(context, "NCCL_GIN_ENABLE") == "1")
    request = "NCCL_GIN_ENABLE=1";
  return all.judge("NCCL's GPU-initiated networking", request,
                   "NCCL_GIN_TYPE=3 lets kernels ring doorbells, 2 uses a CPU thread");
}

} // namespace shmemctl::doctor
