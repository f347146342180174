// The kernels are plain loops that the compiler makes vector instructions of. A function with
// MNMT_MOE_CLONES is compiled for three generations of x86-64 processors, and the loader takes the best that
// the processor has. MNMT_MOE_SHORT_CLONES leaves out the vectors of 64 bytes: in rows of few experts they
// took longer. Functions called by either are compiled along with it only if they are MNMT_MOE_INLINE.
#pragma once

#define MNMT_MOE_INLINE [[gnu::always_inline]] inline

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12
#define MNMT_MOE_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#define MNMT_MOE_SHORT_CLONES [[gnu::target_clones("arch=x86-64-v3", "default")]]
#else
#define MNMT_MOE_CLONES
#define MNMT_MOE_SHORT_CLONES
#endif
