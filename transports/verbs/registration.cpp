#include "transports/verbs/registration.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/resource.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "transports/verbs/device_share.h"

namespace shmemctl::verbs {

namespace {

/// The result of one method: the registration, or its error.
struct Answer {
  MemoryRegion region;
  int error_number = 0;
  std::string message;
};

Answer refused(int error_number) {
  return {nullptr, error_number, std::strerror(error_number)};
}

Answer register_plain(Device& device, void* address, std::size_t size_bytes, int access) {
  const Functions& functions = device.functions();
  errno = 0;
  MemoryRegion region =
      own(functions.reg_mr(device.protection_domain(), address, size_bytes, access),
          functions.dereg_mr);
  return region ? Answer{std::move(region), 0, {}} : refused(errno);
}

Answer register_dma_buf(Device& device, void* address, std::size_t size_bytes,
                        const ExportDmaBuf& export_dma_buf, int access) {
  const Functions& functions = device.functions();
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t begin = first / page * page;
  const std::uintptr_t end = (first + size_bytes + page - 1) / page * page;
  std::string why;
  const std::optional<DmaBuf> buffer = export_dma_buf(begin, end - begin, why);
  if (!buffer)
    return {nullptr, 0, why};
  errno = 0;
  // The registration holds a reference to the buffer; only the call needs the descriptor.
  MemoryRegion region = own(functions.reg_dmabuf_mr(device.protection_domain(),
                                                    buffer->offset_bytes + (first - begin),
                                                    size_bytes, first, buffer->file.get(), access),
                            functions.dereg_mr);
  return region ? Answer{std::move(region), 0, {}} : refused(errno);
}

std::string locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "unlimited";
  return format_size_bytes(limit.rlim_cur);
}

/// The fix for a failed registration.
std::string fix_of(MemoryKind kind, int error_number) {
  if (kind == MemoryKind::cuda)
    return "run shmemctl doctor --only dma-buf,nvidia-peermem,gpudirect-rdma, and check the "
           "kernel log: dmesg";
  if (error_number == ENOMEM || error_number == EAGAIN || error_number == EPERM)
    return "raise the limit of locked memory: ulimit -l unlimited, or LimitMEMLOCK=infinity in "
           "the service that starts the job";
  if (error_number == EFAULT)
    return "use memory that can be written";
  return "check the kernel log: dmesg";
}

} // namespace

const char* to_string(RegistrationMethod method) {
  switch (method) {
  case RegistrationMethod::plain:
    return "plain registration";
  case RegistrationMethod::dma_buf:
    return "dma-buf";
  case RegistrationMethod::peer_memory:
    return "peer memory";
  }
  return "unknown";
}

PathChoice choose_paths(MemoryKind kind, const DeviceMemoryPaths& known) {
  PathChoice choice;
  if (kind == MemoryKind::host) {
    choice.methods = {RegistrationMethod::plain};
    return choice;
  }
  if (!known.dma_buf_off.empty())
    choice.reasons.push_back("dma-buf: " + known.dma_buf_off + " is set");
  else if (!known.library_has_dma_buf)
    choice.reasons.emplace_back("dma-buf: libibverbs has no ibv_reg_dmabuf_mr");
  else if (!known.export_dma_buf)
    choice.reasons.push_back("dma-buf: " + known.no_export_reason);
  else
    choice.methods.push_back(RegistrationMethod::dma_buf);
  if (!known.peer_memory_off.empty())
    choice.reasons.push_back("peer memory: " + known.peer_memory_off + " is set");
  else if (known.peer_memory_module.empty())
    choice.reasons.emplace_back("peer memory: nvidia-peermem is not loaded");
  else
    choice.methods.push_back(RegistrationMethod::peer_memory);
  return choice;
}

std::string peer_memory_module(const Sysroot& sysroot) {
  static constexpr const char* places[][2] = {
      {"/sys/kernel/mm/memory_peers/nvidia-peermem/version", "nvidia-peermem"},
      {"/sys/kernel/mm/memory_peers/nv_mem/version", "nv_peer_mem"},
      {"/sys/module/nvidia_peermem", "nvidia-peermem"},
      {"/sys/module/nv_peer_mem", "nv_peer_mem"}};
  for (const auto& [path, module] : places)
    if (sysroot.exists(path))
      return module;
  return {};
}

DeviceMemoryPaths paths_of(const std::shared_ptr<const DeviceMemory>& memory,
                           const Functions& functions, const Options& options,
                           const Sysroot& sysroot) {
  DeviceMemoryPaths paths;
  paths.no_export_reason = memory->why_no_dma_buf();
  if (paths.no_export_reason.empty())
    paths.export_dma_buf = [memory](std::uintptr_t address, std::size_t size_bytes,
                                    std::string& why) {
      return memory->export_dma_buf(address, size_bytes, why);
    };
  const std::string wanted = options.text("GPUDIRECT");
  if (options.boolean("IB_DISABLE_DMABUF"))
    paths.dma_buf_off = "IB_DISABLE_DMABUF";
  if (wanted == "peermem" || wanted == "off")
    paths.dma_buf_off = "GPUDIRECT=" + wanted;
  if (wanted == "dmabuf" || wanted == "off")
    paths.peer_memory_off = "GPUDIRECT=" + wanted;
  paths.library_has_dma_buf = functions.reg_dmabuf_mr != nullptr;
  paths.peer_memory_module = peer_memory_module(sysroot);
  return paths;
}

MemoryRegion register_memory(Device& device, void* address, std::size_t size_bytes, MemoryKind kind,
                             const DeviceMemoryPaths& known, const std::string& what,
                             RegistrationMethod* used, int access) {
  const PathChoice choice = choose_paths(kind, known);
  std::vector<std::string> said = choice.reasons;
  int error_number = 0;
  for (const RegistrationMethod method : choice.methods) {
    Answer answer =
        method == RegistrationMethod::dma_buf
            ? register_dma_buf(device, address, size_bytes, known.export_dma_buf, access)
            : register_plain(device, address, size_bytes, access);
    if (answer.region) {
      if (used)
        *used = method;
      return std::move(answer.region);
    }
    error_number = answer.error_number;
    said.push_back(method == RegistrationMethod::plain
                       ? answer.message
                       : std::string(to_string(method)) + ": " + answer.message);
  }
  std::string message = join(said, "; "), fix = fix_of(kind, error_number);
  if (error_number == EAGAIN) {
    if (const std::string share = cgroup_share(device.name()); !share.empty()) {
      message += "; " + share;
      fix = refusal(device.name(), error_number, fix).fix;
    }
  }
  if (kind == MemoryKind::host && error_number == ENOMEM)
    message += "; the limit of locked memory is " + locked_memory_limit();
  Where where;
  where.device = device.name();
  throw Error(ExitCode::unavailable, format_size_bytes(size_bytes) + " of " + what, "register",
              message, fix, where);
}

} // namespace shmemctl::verbs
