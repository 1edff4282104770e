// A thread as drivers start them: it does nothing and stays until the process ends.
#ifndef SHMEMCTL_TESTS_FAKE_THREAD_H
#define SHMEMCTL_TESTS_FAKE_THREAD_H

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <unistd.h>

typedef struct {
  const char* name;
  sem_t begun;
} FakeThread;

static void* fake_stay(void* argument) {
  FakeThread* me = (FakeThread*)argument;
  prctl(PR_SET_NAME, me->name, 0, 0, 0);
  sem_post(&me->begun);
  for (;;)
    pause();
  return NULL;
}

/** This library is not unloaded: the thread runs its code when whoever opened it has closed it. */
static inline void fake_stay_loaded(void) {
  Dl_info library;
  if (dladdr((void*)fake_stay, &library) != 0)
    dlopen(library.dli_fname, RTLD_NOW | RTLD_NODELETE);
}

/** Starts one, with a name of at most 15 bytes, and waits until it runs: before, it does not have
 * the signal mask that it will have. */
static inline void fake_start_thread(const char* name) {
  fake_stay_loaded();
  pthread_t thread;
  FakeThread one;
  one.name = name;
  sem_init(&one.begun, 0, 0);
  if (pthread_create(&thread, NULL, fake_stay, &one) == 0) {
    pthread_detach(thread);
    while (sem_wait(&one.begun) != 0) {
    }
  }
  sem_destroy(&one.begun);
}

#endif
