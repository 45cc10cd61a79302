//! The JNI face of named data, carried inside the Hadoop plug-in jar.
