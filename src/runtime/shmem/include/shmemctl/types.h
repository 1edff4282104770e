/* The types of the interface. */
#ifndef SHMEMCTL_TYPES_H
#define SHMEMCTL_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
#include <complex>
typedef std::complex<double> shmemctl_complexd;
typedef std::complex<float> shmemctl_complexf;
#define SHMEMCTL_COMPLEX 1
#elif !defined(__STDC_NO_COMPLEX__)
typedef double _Complex shmemctl_complexd;
typedef float _Complex shmemctl_complexf;
#define SHMEMCTL_COMPLEX 1
#endif

/* Opaque handles, which may be compared for equality. */
typedef struct shmemctl_context* shmem_ctx_t;
typedef struct shmemctl_team* shmem_team_t;

typedef struct {
  int num_contexts;
} shmem_team_config_t;

#if defined(__cplusplus)
#define SHMEMCTL_NORETURN [[noreturn]]
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define SHMEMCTL_NORETURN _Noreturn
#else
#define SHMEMCTL_NORETURN
#endif

#endif
