// Our declarations of PMIx's structures against the header, where it is installed.
#include <gtest/gtest.h>

#include "src/runtime/bootstrap/pmix_abi.h"

#if __has_include(<pmix.h>)
#include <pmix.h>
#include <type_traits>

namespace shmemctl {
namespace {

static_assert(sizeof(pmix::Process) == sizeof(pmix_proc_t));
static_assert(offsetof(pmix::Process, rank) == offsetof(pmix_proc_t, rank));
static_assert(sizeof(pmix::ByteObject) == sizeof(pmix_byte_object_t));
static_assert(offsetof(pmix::ByteObject, size) == offsetof(pmix_byte_object_t, size));
static_assert(sizeof(pmix::Value) == sizeof(pmix_value_t));
static_assert(offsetof(pmix::Value, data) == offsetof(pmix_value_t, data));
static_assert(sizeof(pmix::Value::Data) == sizeof(pmix_value_t{}.data));
static_assert(sizeof(pmix::Info) == sizeof(pmix_info_t));
static_assert(offsetof(pmix::Info, flags) == offsetof(pmix_info_t, flags));
static_assert(offsetof(pmix::Info, value) == offsetof(pmix_info_t, value));
static_assert(std::is_same_v<pmix::Status, pmix_status_t>);
static_assert(std::is_same_v<pmix::DataType, pmix_data_type_t>);
static_assert(std::is_same_v<pmix::Scope, pmix_scope_t>);
static_assert(std::is_same_v<pmix::Rank, pmix_rank_t>);
static_assert(sizeof(pmix_info_directives_t) == sizeof(pmix::Info::flags));
static_assert(pmix::rank_wildcard == (PMIX_RANK_WILDCARD));
static_assert(pmix::max_namespace == PMIX_MAX_NSLEN && pmix::max_key == PMIX_MAX_KEYLEN);
static_assert(pmix::type_bool == PMIX_BOOL && pmix::type_uint32 == PMIX_UINT32 &&
              pmix::type_byte_object == PMIX_BYTE_OBJECT);
static_assert(pmix::scope_global == PMIX_GLOBAL);
static_assert(pmix::success == PMIX_SUCCESS && pmix::error_timeout == PMIX_ERR_TIMEOUT &&
              pmix::error_unreachable == PMIX_ERR_UNREACH &&
              pmix::error_not_found == PMIX_ERR_NOT_FOUND &&
              pmix::error_partial_success == PMIX_ERR_PARTIAL_SUCCESS &&
              pmix::error_lost_connection == PMIX_ERR_LOST_CONNECTION);

TEST(PmixAbi, KeysAreThoseOfTheHeader) {
  EXPECT_STREQ(pmix::key_job_size, PMIX_JOB_SIZE);
  EXPECT_STREQ(pmix::key_collect_data, PMIX_COLLECT_DATA);
}

} // namespace
} // namespace shmemctl
#else
TEST(PmixAbi, KeysAreThoseOfTheHeader) {
  GTEST_SKIP() << "pmix.h is not installed (apt install libpmix-dev)";
}
#endif
