# Puma's settings; what the trial decides comes by the environment.
bind "tcp://#{ENV.fetch 'ADDRESS'}:#{ENV.fetch 'PORT'}?backlog=#{ENV.fetch 'BACKLOG'}"
environment 'production'
threads 0, 5
# One worker would be a process beside its master: one alone serves by itself.
count = Integer(ENV.fetch('WORKERS'))
workers(count > 1 ? count : 0)
