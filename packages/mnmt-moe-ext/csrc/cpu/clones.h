// The kernels are plain loops that the compiler makes vector instructions of. A function with
// MNMT_MOE_CLONES is compiled for three generations of x86-64 processors, and the loader takes the best that
// the processor has. Functions that it calls are compiled along with it only if they are MNMT_MOE_INLINE.
#pragma once

#define MNMT_MOE_INLINE [[gnu::always_inline]] inline

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define MNMT_MOE_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define MNMT_MOE_CLONES
#endif
