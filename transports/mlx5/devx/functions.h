// libmlx5, opened at run time: a table of its functions, which tests fill with their own.
#pragma once

#include <infiniband/mlx5dv.h>

#include <memory>
#include <optional>
#include <string>

#include "transports/verbs/functions.h"

namespace shmemctl::mlx5 {

struct DirectFunctions {
  decltype(&::mlx5dv_is_supported) is_supported = nullptr;
  decltype(&::mlx5dv_open_device) open_device = nullptr;
  decltype(&::mlx5dv_init_obj) init_obj = nullptr;
  decltype(&::mlx5dv_devx_umem_reg) umem_reg = nullptr;
  decltype(&::mlx5dv_devx_umem_reg_ex) umem_reg_ex = nullptr; ///< nullptr before rdma-core 35
  decltype(&::mlx5dv_devx_umem_dereg) umem_dereg = nullptr;
  decltype(&::mlx5dv_devx_alloc_uar) alloc_uar = nullptr;
  decltype(&::mlx5dv_devx_free_uar) free_uar = nullptr;
  decltype(&::mlx5dv_devx_query_eqn) query_eqn = nullptr;
  decltype(&::mlx5dv_devx_general_cmd) general_cmd = nullptr;
  decltype(&::mlx5dv_devx_obj_create) obj_create = nullptr;
  decltype(&::mlx5dv_devx_obj_modify) obj_modify = nullptr;
  decltype(&::mlx5dv_devx_obj_destroy) obj_destroy = nullptr;
  decltype(&::mlx5dv_devx_create_event_channel) create_event_channel = nullptr;
  decltype(&::mlx5dv_devx_destroy_event_channel) destroy_event_channel = nullptr;
  decltype(&::mlx5dv_devx_subscribe_devx_event) subscribe_event = nullptr;
  decltype(&::mlx5dv_devx_get_event) get_event = nullptr;
  // Functions of libibverbs.
  decltype(&::ibv_create_ah) create_ah = nullptr;
  decltype(&::ibv_destroy_ah) destroy_ah = nullptr;

  std::optional<DynamicLibrary> library; ///< empty in tests
};

/// Opens the library. Returns nullptr if it cannot be used.
/// @param verbs libibverbs, open
/// @param file  "libmlx5.so.1"
/// @param why   receives the reason in that case, in one clause
std::shared_ptr<const DirectFunctions>
load_direct_functions(const verbs::Functions& verbs, const std::string& file, std::string& why);

} // namespace shmemctl::mlx5
