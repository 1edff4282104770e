// For clang-tidy over kernels (cmake/Tidy.cmake), in place of CUDA's header of this name, part of
// which only nvcc reads: the runtime's functions and types are CUDA's own, and kernels' built-in
// variables and functions are declared here, as far as kernels of this project use them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#define __noinline__ __attribute__((noinline))

extern "C" cudaError_t cudaConfigureCall(dim3, dim3, std::size_t = 0, cudaStream_t = nullptr);
extern "C" unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t = 0, void* = nullptr);

extern __device__ const uint3 threadIdx, blockIdx;
extern __device__ const dim3 blockDim, gridDim;
extern __device__ const int warpSize;

__device__ void* memcpy(void*, const void*, std::size_t);
__device__ void* memset(void*, int, std::size_t);

__device__ void __trap();
__device__ void __nanosleep(unsigned);
__device__ void __threadfence();
__device__ void __threadfence_system();
__device__ void __syncthreads();
__device__ int __syncthreads_and(int);
__device__ int __syncthreads_or(int);
__device__ void __syncwarp(unsigned = 0xFFFFFFFF);
__device__ unsigned __activemask();
__device__ unsigned __ballot_sync(unsigned, int);
__device__ int __all_sync(unsigned, int);
__device__ int __any_sync(unsigned, int);
__device__ unsigned __reduce_add_sync(unsigned, unsigned);
__device__ int __reduce_add_sync(unsigned, int);
template <class T>
__device__ unsigned __match_any_sync(unsigned, T);
template <class T>
__device__ T __shfl_sync(unsigned, T, int, int = 32);
template <class T>
__device__ T __shfl_xor_sync(unsigned, T, int, int = 32);
template <class T>
__device__ T __shfl_up_sync(unsigned, T, unsigned, int = 32);
template <class T>
__device__ T __shfl_down_sync(unsigned, T, unsigned, int = 32);
template <class T>
__device__ T __ldg(const T*);
__device__ std::size_t __cvta_generic_to_shared(const void*);
__device__ int __popc(unsigned);
__device__ int __ffs(int);
__device__ int __clz(int);
__device__ unsigned __float_as_uint(float);
__device__ float __uint_as_float(unsigned);
template <class T, class U>
__device__ T atomicAdd(T*, U);
template <class T, class U>
__device__ T atomicAdd_system(T*, U);
template <class T, class U, class V>
__device__ T atomicCAS(T*, U, V);
template <class T, class U, class V>
__device__ T atomicCAS_system(T*, U, V);
template <class T, class U>
__device__ T atomicMax(T*, U);
template <class T, class U>
__device__ T atomicMax_system(T*, U);
template <class T, class U>
__device__ T atomicMin(T*, U);
template <class T, class U>
__device__ T atomicMin_system(T*, U);
template <class T, class U>
__device__ T atomicExch(T*, U);
template <class T, class U>
__device__ T atomicExch_system(T*, U);
template <class T, class U>
__device__ T atomicAnd(T*, U);
template <class T, class U>
__device__ T atomicAnd_system(T*, U);
template <class T, class U>
__device__ T atomicOr(T*, U);
template <class T, class U>
__device__ T atomicOr_system(T*, U);
template <class T, class U>
__device__ T atomicXor(T*, U);
template <class T, class U>
__device__ T atomicXor_system(T*, U);
template <class T>
__device__ T min(T, T);
template <class T>
__device__ T max(T, T);
__device__ float __fmul_rn(float, float);
__device__ float __fadd_rn(float, float);
__device__ float __fdiv_rn(float, float);
__device__ float __fmaf_rn(float, float, float);
__device__ float fmaxf(float, float);
__device__ float fabsf(float);
__device__ long long clock64();
__device__ float sinf(float);
__device__ float cosf(float);
__device__ float tanhf(float);
__device__ float __fsub_rn(float, float);
__device__ float __fmaf_ieee_rn(float, float, float);
__device__ int __float2int_rz(float);
__device__ unsigned __float2uint_rz(float);

template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int);
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t*, void (*)(Parameters...), Arguments&&...);
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, Kernel*, int, std::size_t);
template <class T>
cudaError_t cudaMalloc(T**, std::size_t);
template <class T>
cudaError_t cudaGetSymbolAddress(void**, const T&);
template <class T>
cudaError_t cudaGetSymbolSize(std::size_t*, const T&);
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T&, const void*, std::size_t, std::size_t, cudaMemcpyKind,
                                    cudaStream_t);
