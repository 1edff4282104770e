#include "transports/mlx5/devx/functions.h"

namespace shmemctl::mlx5 {

std::shared_ptr<const DirectFunctions>
load_direct_functions(const verbs::Functions& verbs, const std::string& file, std::string& why) {
  if (!verbs.library) {
    why = "libibverbs is not open";
    return nullptr;
  }
  // libibverbs also loads this library, as the provider of its devices, and does not unload it.
  std::optional<DynamicLibrary> library =
      DynamicLibrary::open({file}, &why, DynamicLibrary::Needs{.stay_loaded = true});
  if (!library)
    return nullptr;
  auto table = std::make_shared<DirectFunctions>();
  SymbolLookup lookup;
  lookup.require(*library, table->is_supported, "mlx5dv_is_supported");
  lookup.require(*library, table->open_device, "mlx5dv_open_device");
  lookup.require(*library, table->init_obj, "mlx5dv_init_obj");
  lookup.require(*library, table->umem_reg, "mlx5dv_devx_umem_reg");
  lookup.require(*library, table->umem_dereg, "mlx5dv_devx_umem_dereg");
  lookup.require(*library, table->alloc_uar, "mlx5dv_devx_alloc_uar");
  lookup.require(*library, table->free_uar, "mlx5dv_devx_free_uar");
  lookup.require(*library, table->query_eqn, "mlx5dv_devx_query_eqn");
  lookup.require(*library, table->general_cmd, "mlx5dv_devx_general_cmd");
  lookup.require(*library, table->obj_create, "mlx5dv_devx_obj_create");
  lookup.require(*library, table->obj_modify, "mlx5dv_devx_obj_modify");
  lookup.require(*library, table->obj_destroy, "mlx5dv_devx_obj_destroy");
  lookup.require(*library, table->create_event_channel, "mlx5dv_devx_create_event_channel");
  lookup.require(*library, table->destroy_event_channel, "mlx5dv_devx_destroy_event_channel");
  lookup.require(*library, table->subscribe_event, "mlx5dv_devx_subscribe_devx_event");
  lookup.require(*library, table->get_event, "mlx5dv_devx_get_event");
  lookup.require(*verbs.library, table->create_ah, "ibv_create_ah");
  lookup.require(*verbs.library, table->destroy_ah, "ibv_destroy_ah");
  if (!lookup.missing().empty()) {
    why = lookup.missing() + ": it is older than rdma-core 32";
    return nullptr;
  }
  table->umem_reg_ex = library->function<std::remove_pointer_t<decltype(table->umem_reg_ex)>>(
      "mlx5dv_devx_umem_reg_ex");
  table->library = std::move(library);
  return table;
}

} // namespace shmemctl::mlx5
