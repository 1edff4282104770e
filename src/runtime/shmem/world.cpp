#include "src/runtime/shmem/world.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/error.h"
#include "src/runtime/proxy/proxy.h"

extern "C" {
shmemctl_team shmemctl_world_team{shmemctl::team_world, 0};
shmemctl_team shmemctl_shared_team{shmemctl::team_shared, 0};
shmemctl_context shmemctl_default_context{0, &shmemctl_world_team, 0};
}

namespace shmemctl::api {

std::atomic<World*> process_world{nullptr};

namespace {
thread_local World* world_of_thread = nullptr;
}

void set_thread_world(World* world) {
  world_of_thread = world;
}

World& thread_world() {
  if (!world_of_thread)
    throw wrong_use("OpenSHMEM routine", "call",
                    "the library is not initialized, or already finalized",
                    "call it between shmem_init and shmem_finalize");
  return *world_of_thread;
}

void fail(const Error& error) {
  World* world = process_world.load(std::memory_order_acquire);
  if (!world)
    world = world_of_thread;
  if (world)
    world->fail(error);
  print_error(error);
  std::exit(static_cast<int>(error.code()));
}

void fail_unexpectedly(const char* what) {
  fail(Error(
      ExitCode::unavailable, "library call", "complete", what,
      "give the process more memory if that is the cause; otherwise report it with the program"));
}

Error wrong_use(const std::string& subject, const std::string& attempted,
                const std::string& problem, const std::string& fix) {
  return {ExitCode::usage, subject, attempted, problem, fix};
}

SignalOp signal_op(int op) {
  if (op != SHMEM_SIGNAL_SET && op != SHMEM_SIGNAL_ADD)
    throw wrong_use("signal operator " + std::to_string(op), "use",
                    "not defined by the specification", "use SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD");
  return op == SHMEM_SIGNAL_SET ? SignalOp::set : SignalOp::add;
}

void require_comparison(int cmp) {
  if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE)
    throw wrong_use("comparison " + std::to_string(cmp), "use", "not defined by the specification",
                    "use SHMEM_CMP_EQ, NE, GT, GE, LT or LE");
}

int world_pe_in_team(World& world, const shmemctl_context& context, int pe) {
  const int found = world.teams.world_pe(context.team->id, pe);
  if (found < 0)
    throw wrong_use("PE " + std::to_string(pe), "access",
                    "the context's team has PEs 0 to " +
                        std::to_string(world.teams.n_pes(context.team->id) - 1),
                    "pass one of them");
  return found;
}

void* World::hold(BufferRef buffer) {
  void* const address = buffer.address();
  const std::lock_guard lock(held_mutex_);
  held_.emplace(address, std::move(buffer));
  return address;
}

bool World::let_go(const void* address) {
  const std::lock_guard lock(held_mutex_);
  const auto found = held_.find(address);
  if (found == held_.end())
    return false;
  held_.erase(found);
  return true;
}

void World::let_all_go() {
  const std::lock_guard lock(held_mutex_);
  held_.clear();
}

shmem_ctx_t World::make_context(shmem_team_t team, long options) {
  const std::lock_guard lock(handles_mutex_);
  for (int number = 1; number < first_proxy_context; ++number) {
    if (numbers_.test(static_cast<std::size_t>(number)))
      continue;
    numbers_.set(static_cast<std::size_t>(number));
    const bool one_thread = (options & (SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED)) != 0;
    rma.serialize(number, thread_level() == SHMEM_THREAD_MULTIPLE && !one_thread);
    contexts_.push_back(
        std::make_unique<shmemctl_context>(shmemctl_context{number, team, options}));
    return contexts_.back().get();
  }
  return nullptr;
}

void World::destroy_context(shmem_ctx_t context) {
  rma.quiet(context->number);
  const std::lock_guard lock(handles_mutex_);
  const auto found = std::find_if(contexts_.begin(), contexts_.end(),
                                  [&](const auto& each) { return each.get() == context; });
  if (found == contexts_.end())
    return; // SHMEM_CTX_DEFAULT is not destroyed
  numbers_.reset(static_cast<std::size_t>(context->number));
  contexts_.erase(found);
}

shmem_team_t World::make_team(TeamId id, int num_contexts) {
  if (id == invalid_team)
    return SHMEM_TEAM_INVALID;
  const std::lock_guard lock(handles_mutex_);
  teams_.push_back(std::make_unique<shmemctl_team>(shmemctl_team{id, num_contexts}));
  return teams_.back().get();
}

void World::destroy_team(shmem_team_t team) {
  std::vector<shmem_ctx_t> contexts;
  {
    const std::lock_guard lock(handles_mutex_);
    for (const auto& context : contexts_)
      if (context->team == team)
        contexts.push_back(context.get());
  }
  for (shmem_ctx_t context : contexts)
    destroy_context(context);
  teams.destroy(team->id);
  const std::lock_guard lock(handles_mutex_);
  std::erase_if(teams_, [&](const auto& each) { return each.get() == team; });
}

} // namespace shmemctl::api
