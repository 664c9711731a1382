"""`bounds`: does a kernel stay in its buffers, and does it write every element of its outputs?"""
