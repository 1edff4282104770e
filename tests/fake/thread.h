// A thread as drivers start them: it does nothing and stays until the process ends.
#ifndef SHMEMCTL_TESTS_FAKE_THREAD_H
#define SHMEMCTL_TESTS_FAKE_THREAD_H

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

/** Starts one, with a name of at most 15 bytes, and waits until it runs: before, it does not have
 * the signal mask that it will have. */
static inline void fake_start_thread(const char* name) {
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
