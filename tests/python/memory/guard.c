/* Memory that ends at a page nobody may touch, for every allocation with a large alignment: the elements of tensors, whoever makes them.
 *
 * Loaded before everything else (LD_PRELOAD), it stands in for posix_memalign and aligned_alloc. What torch asks for is aligned to
 * eight bytes, so that it ends less than that before the page: its kernels and Pyrite's take such memory. What others ask for keeps its
 * alignment. Freed memory becomes untouchable as well, so that its use after free is a fault. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096UL
#define MOST 16384 /* mappings of a process are limited */
#define NEAR 64    /* how far from its own place a block is noted */
#define LATE 2000  /* freed ones that stay untouchable */

struct block { char *begin; size_t bytes; char *data; };
static struct block live[MOST], late[LATE];
static size_t next_late;
static size_t guarded, guarded_now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*next_free)(void *);
static int (*next_memalign)(void **, size_t, size_t);

__attribute__((constructor)) static void found(void) {
    next_free = dlsym(RTLD_NEXT, "free");
    next_memalign = dlsym(RTLD_NEXT, "posix_memalign");
}

static size_t own_place(void *data) { return (size_t)(((uintptr_t)data >> 12) * 0x9E3779B97F4A7C15UL >> 40); }

static int is_torch(void *caller) {
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libc10.so");
}

static void *made(size_t alignment, size_t size) {
    size_t pages = (size + alignment + PAGE - 1) / PAGE + 1;
    char *begin = mmap(NULL, (pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED) return NULL;
    char *end = begin + pages * PAGE;
    mprotect(end, PAGE, PROT_NONE);
    char *data = (char *)((uintptr_t)(end - size) & ~(uintptr_t)(alignment - 1));
    memset(begin, 0xAB, pages * PAGE);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < NEAR && guarded_now < MOST / 2; i++) {
        size_t at = (own_place(data) + i) % MOST;
        if (!live[at].data) {
            live[at] = (struct block){begin, (pages + 1) * PAGE, data};
            guarded++, guarded_now++;
            pthread_mutex_unlock(&lock);
            return data;
        }
    }
    pthread_mutex_unlock(&lock);
    munmap(begin, (pages + 1) * PAGE);
    return NULL;
}

static size_t place(void *data) {
    for (size_t i = 0; i < NEAR; i++) {
        size_t at = (own_place(data) + i) % MOST;
        if (live[at].data == data) return at;
    }
    return MOST;
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (alignment >= 64 && size > 0) {
        void *data = made(is_torch(__builtin_return_address(0)) ? 8 : alignment, size);
        if (data) {
            *result = data;
            return 0;
        }
    }
    if (!next_memalign) found();
    return next_memalign(result, alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    void *result = NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    int failed = posix_memalign(&result, alignment, size);
    if (failed) errno = failed;
    return failed ? NULL : result;
}

void free(void *data) {
    if (guarded && data) {
        pthread_mutex_lock(&lock);
        size_t at = place(data);
        if (at < MOST) {
            struct block gone = live[at], old = late[next_late];
            live[at].data = NULL;
            guarded_now--;
            late[next_late] = gone;
            next_late = (next_late + 1) % LATE;
            pthread_mutex_unlock(&lock);
            mprotect(gone.begin, gone.bytes, PROT_NONE);
            if (old.begin) munmap(old.begin, old.bytes);
            return;
        }
        pthread_mutex_unlock(&lock);
    }
    if (!next_free) found();
    next_free(data);
}

/* How many blocks were guarded so far. */
size_t guarded_blocks(void) { return guarded; }
