// In place of CUDA's header, which clang cannot read; nvshmem.h includes it for programs only.
#pragma once

namespace cooperative_groups {}
